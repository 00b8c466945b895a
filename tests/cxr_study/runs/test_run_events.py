from cxr_study.runs.results import read_events


def test_a_run_that_has_not_started_has_none(tmp_path):
    assert read_events(tmp_path) == []


def test_a_line_that_is_being_written_is_left_for_the_next_time(tmp_path):
    (tmp_path / "run_record.jsonl").write_text('{"event": "started"}\n{"event": "rou')
    assert read_events(tmp_path) == [{"event": "started"}]


def test_a_torn_line_hides_no_other(tmp_path):
    torn = '{"event": "started"}\n{"event": "rou{"event": "ended"}\n{"event": "round"}\n'
    (tmp_path / "run_record.jsonl").write_text(torn)
    assert read_events(tmp_path) == [{"event": "started"}, {"event": "round"}]

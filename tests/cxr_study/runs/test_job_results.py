import json

import pytest

from cxr_study.evaluation.summary import Refusal
from cxr_study.runs import job_results
from cxr_study.runs.job_results import ResultsError


@pytest.fixture
def server(tmp_path):
    """A run of two rounds: site b is not in round 1, and the final model was measured at both."""
    server = tmp_path / "job"
    for folder in ("metrics", "cross_site_val", "models"):
        (server / folder).mkdir(parents=True)
    rounds = [
        {
            "round": 0,
            "sites": [site("b", bce=0.6, auroc=0.5, train_seconds=4.0), site("a", bce=0.4)],
        },
        {"round": 1, "sites": [site("a", bce=0.3, validate_seconds=1.0)]},
    ]
    write_lines(server / "metrics" / "round_metrics.jsonl", rounds)
    (server / "cross_site_val" / "cross_val_results.json").write_text(
        json.dumps(
            {
                "a": {"SRV_last": {"bce": 0.25, "bce/Edema": 0.25}, "SRV_best": {"bce": 9.0}},
                "b": {"SRV_last": {"bce": 0.75, "auroc": 0.9}},
            }
        )
    )
    events = [
        {"event": "started"},
        {"event": "refused", "site": "b", "round": 1, "reason": "NaN"},
        {"event": "round", "round": 0, "seconds": 3},
        {"event": "stopped", "round": 1, "best_round": 0, "patience": 1},
        {"event": "round", "round": 1, "seconds": 3},
        {"event": "ended", "seconds": 12.5},
    ]
    write_lines(server / "run_record.jsonl", events)
    return server


def site(name, **metrics):
    return {"name": name, "metrics": [{"name": k, "value": v} for k, v in metrics.items()]}


def write_lines(path, entries):
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


class TestRounds:
    def test_every_round_and_then_the_final_model(self, server):
        assert [entry.round for entry in job_results.rounds(server)] == [0, 1, 2]

    def test_mean_loss_is_over_the_sites_that_took_part(self, server):
        means = [entry.mean_validation_bce for entry in job_results.rounds(server)]
        assert means == pytest.approx([0.5, 0.3, 0.5])

    def test_a_model_with_columns_of_the_sites_own_is_not_the_global_one(self, server):
        path = server / "metrics" / "round_metrics.jsonl"
        own = site("a", bce=0.1, auroc=0.9, warmed_up=3.0, train_seconds=4.0)
        write_lines(path, [{"round": 0, "sites": [own, site("b", bce=0.5, warmed_up=0.0)]}])
        assert job_results.rounds(server, personal=True)[0].mean_validation_bce == pytest.approx(
            0.3
        )
        first = job_results.rounds(server)[0]
        assert first.mean_validation_bce == 0.5
        assert first.sites["a"].validation_bce is None
        assert first.sites["a"].validation_auroc is None
        assert first.sites["a"].train_seconds == 4.0

    def test_sites_by_name_with_what_was_measured(self, server):
        first, second, final = job_results.rounds(server)
        assert list(first.sites) == ["a", "b"] and list(second.sites) == ["a"]
        b = first.sites["b"]
        assert (b.validation_bce, b.validation_auroc, b.train_seconds) == (0.6, 0.5, 4.0)
        assert b.validate_seconds is None and second.sites["a"].validate_seconds == 1.0
        assert final.sites["b"].validation_auroc == 0.9
        assert final.sites["b"].train_seconds is None

    def test_a_round_without_measurement_has_no_mean(self, server):
        path = server / "metrics" / "round_metrics.jsonl"
        write_lines(path, [{"round": 0, "sites": [site("a")]}])
        first, _ = job_results.rounds(server)
        assert first.mean_validation_bce is None and first.sites["a"].validation_bce is None

    def test_where_nobody_measured_the_final_model_it_is_left_out(self, server):
        (server / "cross_site_val" / "cross_val_results.json").unlink()
        assert [entry.round for entry in job_results.rounds(server)] == [0, 1]

    def test_a_round_that_a_later_job_made_again_is_the_later_ones(self, server, tmp_path):
        later = tmp_path / "later"
        (later / "metrics").mkdir(parents=True)
        again = [{"round": 1, "sites": [site("a", bce=0.1)]}, {"round": 2, "sites": [site("a")]}]
        write_lines(later / "metrics" / "round_metrics.jsonl", again)
        rounds = job_results.rounds(server, later)
        assert [entry.round for entry in rounds] == [0, 1, 2]
        assert rounds[0].mean_validation_bce == 0.5 and rounds[1].mean_validation_bce == 0.1

    def test_a_run_that_has_not_finished_is_refused(self, tmp_path):
        with pytest.raises(ResultsError, match=r"round_metrics\.jsonl does not exist; has the run"):
            job_results.rounds(tmp_path)


def test_refusals_are_those_on_record(server):
    assert job_results.refusals(server) == (Refusal(round=1, site="b", reason="NaN"),)


def test_a_dropped_round_is_a_refusal_of_all_sites(tmp_path):
    line = json.dumps({"event": "dropped", "round": 2, "reason": "not finite"})
    (tmp_path / "run_record.jsonl").write_text(line + "\n")
    assert job_results.refusals(tmp_path) == (Refusal(round=2, site="all", reason="not finite"),)


def test_rounds_are_counted_as_they_were_made(server):
    assert job_results.rounds_run(server) == 2
    assert job_results.rounds_run(server, server) == 4


def test_a_run_that_stopped_early_is_known_by_its_record(server, tmp_path):
    assert job_results.stopped_early(server)
    write_lines(tmp_path / "run_record.jsonl", [{"event": "ended", "seconds": 1}])
    assert not job_results.stopped_early(tmp_path)


def test_models_of_sites_own_are_those_that_there_are(tmp_path):
    folders = {"a": tmp_path / "a", "b": tmp_path / "b"}
    assert job_results.personal_checkpoints(folders) == {}
    path = folders["b"] / "site_best.npz"
    path.parent.mkdir()
    path.touch()
    assert job_results.personal_checkpoints(folders) == {"b": path}


def test_wall_time_is_the_jobs(server):
    assert job_results.wall_seconds(server) == 12.5


def test_best_checkpoint_is_the_servers(server):
    with pytest.raises(ResultsError, match=r"best\.npz does not exist; has the run"):
        job_results.best_checkpoint(server)
    path = server / "models" / "best.npz"
    path.touch()
    assert job_results.best_checkpoint(server) == path


def test_events_are_whole_lines_and_a_torn_one_hides_no_other(tmp_path):
    assert job_results.read_events(tmp_path) == []
    torn = '{"event": "started"}\n{"event": "rou{"event": "ended"}\n{"event": "round"}\n{"eve'
    (tmp_path / "run_record.jsonl").write_text(torn)
    assert job_results.read_events(tmp_path) == [{"event": "started"}, {"event": "round"}]

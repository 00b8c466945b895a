from cxr_study.common import progress


def test_where_nobody_watches_there_is_a_line_per_quarter(capsys):
    with progress.bar("decoding") as report:
        for done in range(101):
            report(done, 100)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [f"decoding: {done}/100" for done in (25, 50, 75, 100)]


def test_quarters_that_are_jumped_over_give_one_line(capsys):
    with progress.bar("decoding") as report:
        report(9, 10)
        report(10, 10)
    assert capsys.readouterr().err == "decoding: 9/10\ndecoding: 10/10\n"


def test_nothing_to_do_says_nothing(capsys):
    with progress.bar("decoding") as report:
        report(0, 0)
    assert capsys.readouterr().err == ""


def test_on_a_terminal_there_is_a_bar(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.bar("decoding") as report:
        report(2, 4)
    said = capsys.readouterr().err
    assert "decoding" in said and "2/4" in said and "━" in said

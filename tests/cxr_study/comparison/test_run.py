"""A whole comparison with trainings that are made up; real ones are in test_cell."""

import dataclasses
import io

import pytest
from rich.console import Console

from cxr_study.comparison import run as comparison
from cxr_study.comparison.grid import ComparisonError, Setup
from cxr_study.jobs.methods import Row
from cxr_study.phantom.writers.write import write_phantom
from cxr_study.runs.run_queue import DONE, FAILS, STARTS, Failure

ROWS = (Row("surgical", "fedavg"), Row("vanilla", "fedavg"))
SETUP = Setup(("nih", "chexpert"), 2, 4, 1, {"image_size": 16})


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phantom") / "phantom"
    write_phantom(folder, images_per_site=60, size=16)
    return folder / "sites"


@pytest.fixture
def compare(phantom, made_up, monkeypatch, tmp_path):
    """Compare two rows with two seeds; `bad` trainings fail, others are surgical's gain."""
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))

    def compare(bad=(), digests=("a", "a"), out="out"):
        def run_all(cells, folder, *, at_once, told):
            outcomes, failures = {}, []
            for cell in cells:
                told(cell, STARTS)
                told(cell, "round 2")
                if cell.name in bad:
                    failures.append(Failure(cell, "no disk.", folder / "x.log"))
                    told(cell, FAILS)
                    continue
                surgical = cell.row.method == "surgical"
                values = {"other": 0.8 if surgical else 0.6, "digest": digests[not surgical]}
                outcomes[cell.name] = made_up.outcome(cell, **values)
                told(cell, DONE)
            return outcomes, failures

        monkeypatch.setattr(comparison.schedule, "run_all", run_all)
        monkeypatch.setattr(comparison, "check", lambda setup, initial_body: 16)
        (tmp_path / out).mkdir()
        shown = io.StringIO()
        found, page = comparison.compare(
            ROWS, 2, SETUP, tmp_path / out, site_files=phantom, initial_body=tmp_path / "body.npz",
            at_once=1, console=Console(file=shown, width=100),
        )  # fmt: skip
        return found, page, shown.getvalue()

    return compare


def test_what_was_trained_becomes_lines_verdicts_and_files(compare):
    found, page, _ = compare()
    assert [(line.row, line.trained) for line in found.lines] == [(row, 2) for row in ROWS]
    decided = [f for v in found.verdicts for f in v.findings if f.verdict == "reproduced"]
    assert {(f.better, f.worse) for f in decided} == {ROWS}
    assert (found.equal_classes, found.failures, found.phantom) == ("reproduced", {}, False)
    assert {path.name for path in page.parent.iterdir() if path.is_file()} == {
        "comparison.html", "comparison.json", "results.csv", "table.md",
    }  # fmt: skip


def test_models_that_differ_with_equal_classes_are_told(compare):
    assert compare(digests=("a", "b"))[0].equal_classes == "not reproduced"


def test_equal_class_trainings_are_in_no_line(compare):
    found, *_ = compare()
    assert sum(line.trained for line in found.lines) == 4
    assert found.seconds == 60.0


def test_a_failure_is_told_with_its_log_and_the_rest_counts(compare):
    found, page, shown = compare(bad=["vanilla-fedavg-seed1"])
    assert list(found.failures) == ["vanilla-fedavg-seed1"]
    assert found.failures["vanilla-fedavg-seed1"].startswith("no disk. See ")
    assert [line.trained for line in found.lines] == [2, 1]
    assert "vanilla-fedavg-seed1: failed" in shown and "surgical-fedavg-seed0: done" in shown
    assert "no disk." in page.read_text()


def test_a_folder_that_flare_cannot_work_in_is_refused(compare):
    with pytest.raises(ComparisonError, match="without spaces in its path"):
        compare(out="my out")


def test_a_setup_that_cannot_work_is_refused_before_anything_is_made(phantom, tmp_path):
    setup = dataclasses.replace(SETUP, most_rounds=1)
    with pytest.raises(ComparisonError, match="--most-rounds"):
        comparison.compare(
            ROWS, 1, setup, tmp_path / "out", site_files=phantom, initial_body=None, at_once=1,
            console=Console(quiet=True),
        )  # fmt: skip
    assert not (tmp_path / "out").exists()

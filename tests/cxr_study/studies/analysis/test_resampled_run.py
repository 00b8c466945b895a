from types import SimpleNamespace

import numpy as np
import pytest

import study_runs
from cxr_study.evaluation.bootstrap import resample
from cxr_study.studies.analysis import resampled_run
from cxr_study.studies.analysis.resampled_run import METRICS, RESAMPLED_FILE, make, read
from cxr_study.studies.plan.run_folder import RUNS, read_result

RNG = np.random.default_rng(0)
IMAGES = 40
NAMES = ("Edema", "Mass", "Fracture")
LABELS = {name: (RNG.random(IMAGES) < 0.4).astype(float) for name in NAMES}
PATIENTS = [str(n // 2) for n in range(IMAGES)]
PREDICTED = {name: RNG.random(IMAGES).astype(np.float32) for name in reversed(NAMES)}


@pytest.fixture
def kept(tmp_path):
    """A finished run on two test sets; the second lacks a class, as site b's own model does."""
    run = study_runs.run("personalised")
    tables = {
        "nih": study_runs.table(LABELS, patient=PATIENTS),
        "mimic": study_runs.table({"Mass": LABELS["Mass"]}, patient=PATIENTS),
    }
    own = {name: PREDICTED[name] for name in ("Fracture", "Mass")}
    predicted = {("a", test): PREDICTED for test in tables} | {("b", test): own for test in tables}
    study_runs.finish(run, tmp_path, tables, predicted)
    result = read_result(tmp_path / RUNS / run.key)
    patients = dict.fromkeys(result.tests.values(), np.array(PATIENTS))
    return SimpleNamespace(
        make=lambda resamples=20: make(tmp_path, run.key, result, resamples),
        read=lambda resamples=20: read(tmp_path, run.key, result, patients, resamples),
        place=tmp_path / RUNS / run.key,
    )


def test_every_model_is_resampled_on_every_test_set_over_the_classes_that_both_have(kept):
    kept.make()
    found = kept.read()
    assert {key: model.classes for key, model in found.items()} == {
        ("a", "nih"): NAMES,
        ("a", "mimic"): ("Mass",),
        ("b", "nih"): ("Mass", "Fracture"),
        ("b", "mimic"): ("Mass",),
    }


def test_what_is_kept_is_what_resampling_gives_to_the_last_bit(kept):
    kept.make()
    for model in kept.read().values():
        labels = np.stack([LABELS[name] for name in model.classes], axis=1)
        scores = np.stack([PREDICTED[name] for name in model.classes], axis=1)
        wanted = resample(labels, scores, model.classes, PATIENTS, seed=0, resamples=20)
        for metric in METRICS:
            np.testing.assert_array_equal(model.values[metric], wanted.values[metric])
            np.testing.assert_array_equal(model.drawn[metric], wanted.drawn[metric])
        assert (model.patients.tolist(), model.seed) == (PATIENTS, 0)


def test_what_is_kept_is_not_made_again(kept, monkeypatch):
    kept.make()
    monkeypatch.setattr(resampled_run, "resample", None)
    kept.make()


def test_another_number_of_resamples_or_an_older_format_is_made_anew(kept, monkeypatch):
    kept.make(20)
    kept.make(30)
    assert len(kept.read(30)["a", "nih"].drawn["auroc"]) == 30
    monkeypatch.setattr(resampled_run, "FORMAT", resampled_run.FORMAT + 1)
    made = (kept.place / RESAMPLED_FILE).read_bytes()
    kept.make(30)
    assert (kept.place / RESAMPLED_FILE).read_bytes() != made


def test_the_file_appears_whole_or_not_at_all(kept, monkeypatch):
    def full(file, **arrays):
        file.write(b"half")
        raise OSError("no space left")

    before = set(kept.place.iterdir())
    monkeypatch.setattr(resampled_run.np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        kept.make()
    assert set(kept.place.iterdir()) == before

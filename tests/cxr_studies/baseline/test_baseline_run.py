from pathlib import Path

import pytest

from cxr_studies.baseline import baseline_run, without_federation
from cxr_studies.baseline.baseline_run import METHODS, BaselineRun, all_settings, train
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.jobs.job import Job
from cxr_study.jobs.presets import JobError
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from surgical_aggregation.site.training import tensorflow_setup
from surgical_aggregation.site.training.training_options import TrainingOptions

JOBS = Path(__file__).parents[3] / "jobs"


@pytest.mark.parametrize(("method", "job"), METHODS.items())
def test_settings_are_those_of_the_federated_job_unless_they_are_set(method, job):
    of_job = Job.of(job).settings
    values = all_settings(method, {})
    assert values == {name: of_job[name] for name in values}
    assert set(values) == set(baseline_run.SETTINGS) & of_job.keys()
    changed = all_settings(method, {"epochs": 3, "learning_rate": 1})
    assert changed == {**values, "epochs": 3, "learning_rate": 1}
    assert isinstance(changed["learning_rate"], float)  # as Keras needs it


@pytest.mark.parametrize(("method", "settings", "message"), [
    ("centralised", {"min_clients": 1}, "centralised training has no setting 'min_clients'"),
    ("individual", {"epochs": "many"}, "'epochs' needs a whole number"),
    ("centralised", {"num_rounds": 0}, "'num_rounds' must be 1 or more; got 0"),
])  # fmt: skip
def test_what_means_nothing_without_a_federation_is_refused(method, settings, message):
    with pytest.raises(JobError, match=message):
        all_settings(method, settings)


@pytest.fixture
def called(cache, monkeypatch, tmp_path, drawn):
    """What `train` makes of a run: with what it sets TensorFlow up, and what it trains."""
    save(Checkpoint({}, {"seed": 5}), tmp_path / "body.npz")

    def call(method="centralised", sites=("nih", "chexpert"), **settings):
        reported = {}

        def train_alone(site, options, initial, **rest):
            reported.update(site=site, options=options, initial=initial, **rest)

        monkeypatch.setattr(without_federation, "train_alone", train_alone)
        set_up = lambda *values: reported.update(runtime=values)  # noqa: E731
        monkeypatch.setattr(tensorflow_setup, "configure", set_up)
        values = all_settings(method, {"image_size": 16, **settings})
        files, body = drawn / "sites", tmp_path / "body.npz"
        train(BaselineRun(method, sites, values, tmp_path / "out", files, body))
        return reported

    return call


def test_settings_come_to_where_they_are_used(called):
    options = {
        "strategy": "fedbn+", "epochs": 2, "learning_rate": 0.5, "warmup_epochs": 3,
        "warmup_learning_rate": 0.25, "gradient_clip": 1.5, "class_weighting": "balanced",
        "focal_gamma": 2.0,
    }  # fmt: skip
    of_site = {
        "image_size": 16, "hidden": 7, "batch_size": 5, "augmentation": "paper", "seed": 9,
        "backbone": "densenet121", "union": ",".join((*UNION_CLASSES, "Scoliosis")),
    }  # fmt: skip
    others = {"threads": 2, "mixed_precision": True, "num_rounds": 8, "patience": 4}
    reported = called(**options, **of_site, **others)
    assert reported["options"] == TrainingOptions(**options)
    assert reported["runtime"] == (2, 9, True)
    assert (reported["rounds"], reported["patience"]) == (8, 4)
    for site in reported["measured_at"].values():
        assert {name: getattr(site, name) for name in of_site} == of_site
    assert reported["facts"] == {"method": "centralised", "strategy": "fedbn+"}
    assert reported["initial"].manifest["seed"] == 5


BOTH = ("nih", "chexpert")


@pytest.mark.parametrize(("method", "sites", "classes", "other_classes"), [
    ("centralised", BOTH, UNION_CLASSES, "absent"),
    ("centralised-partial", BOTH, UNION_CLASSES, "unknown"),
    ("individual", BOTH[:1], NIH_CLASSES, None), ("individual", BOTH[1:], CHEXPERT_CLASSES, None),
])  # fmt: skip
def test_sites_are_pooled_on_all_cores_and_measure(called, method, sites, classes, other_classes):
    reported = called(method, sites)
    assert reported["runtime"][0] == tensorflow_setup.cores()
    assert tuple(reported["measured_at"]) == sites and reported["site"].classes == classes
    assert reported["site"].members == tuple(reported["measured_at"].values())
    if other_classes:
        assert {m.other_classes for m in reported["site"].members} == {other_classes}

from pathlib import Path

import pytest

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.jobs import job_folder
from cxr_study.jobs.command_line_settings import JobError
from cxr_study.phantom.writers.write import write_phantom
from cxr_study.runs import baseline_run
from cxr_study.runs.baseline_run import METHODS, BaselineRun, all_settings, train
from cxr_study.training import baseline
from cxr_study.training.chest_xray_site import PooledSite
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from surgical_aggregation.site.training import tensorflow_setup
from surgical_aggregation.site.training.training_options import TrainingOptions

JOBS = Path(__file__).parents[3] / "jobs"


class TestSettings:
    @pytest.mark.parametrize(("method", "job"), METHODS.items())
    def test_they_are_those_of_the_federated_job(self, method, job):
        of_job = job_folder.read_settings(JOBS / job)
        values = all_settings(method, {})
        assert values == {name: of_job[name] for name in values}
        assert set(values) == set(baseline_run.SETTINGS) & of_job.keys()

    def test_some_are_set_otherwise(self):
        changed = all_settings("centralised", {"epochs": 3, "learning_rate": 1, "union": "A,B"})
        assert (changed["epochs"], changed["union"]) == (3, "A,B")
        assert isinstance(changed["learning_rate"], float)  # as Keras needs it
        unchanged = all_settings("centralised", {})
        assert {k for k in unchanged if unchanged[k] != changed[k]} == {
            "epochs", "learning_rate", "union",
        }  # fmt: skip

    @pytest.mark.parametrize("name", ["proximal", "min_clients", "send", "server_optimizer"])
    def test_one_that_means_something_in_a_federation_only_is_refused(self, name):
        with pytest.raises(JobError, match=f"centralised training has no setting '{name}'"):
            all_settings("centralised", {name: 1})

    def test_a_value_of_another_kind_is_refused(self):
        with pytest.raises(JobError, match="'epochs' needs a whole number"):
            all_settings("individual", {"epochs": "many"})

    def test_fedbn_is_refused_with_the_reason(self):
        with pytest.raises(JobError, match=r"fedavg or fedbn\+; .* does not send"):
            all_settings("individual", {"strategy": "fedbn"})

    def test_an_unknown_method_is_refused(self):
        with pytest.raises(JobError, match=r"no method 'centralized'.*centralised"):
            all_settings("centralized", {})


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    root = tmp_path_factory.mktemp("study") / "phantom"
    write_phantom(root, images_per_site=60, size=16)
    return root


@pytest.fixture
def called(monkeypatch, tmp_path, phantom):
    """What `train` makes of a run: with what it sets TensorFlow up, and what it trains."""
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))

    def call(method="centralised", sites=("nih", "chexpert"), **settings):
        told = {}
        monkeypatch.setattr(
            tensorflow_setup, "configure", lambda *values: told.update(runtime=values)
        )
        monkeypatch.setattr(
            baseline,
            "train_alone",
            lambda site, options, initial, **rest: told.update(
                site=site, options=options, initial=initial, **rest
            ),
        )
        save(Checkpoint({}, {"seed": 5}), tmp_path / "body.npz")
        values = all_settings(method, {"image_size": 16, **settings})
        train(
            BaselineRun(
                method, sites, values, tmp_path / "out", phantom / "sites", tmp_path / "body.npz"
            )
        )
        return told

    return call


class TestTrain:
    def test_settings_come_to_where_they_are_used(self, called):
        options = {
            "strategy": "fedbn+", "epochs": 2, "learning_rate": 0.5, "warmup_epochs": 3,
            "warmup_learning_rate": 0.25, "gradient_clip": 1.5, "class_weighting": "balanced",
            "focal_gamma": 2.0,
        }  # fmt: skip
        of_site = {
            "image_size": 16, "hidden": 7, "batch_size": 5, "augmentation": "paper", "seed": 9,
            "backbone": "densenet121", "union": ",".join((*UNION_CLASSES, "Scoliosis")),
        }  # fmt: skip
        runtime = {"threads": 2, "mixed_precision": True}
        told = called(**options, **of_site, **runtime, num_rounds=8, patience=4)
        assert told["options"] == TrainingOptions(**options)
        assert told["runtime"] == (2, 9, True)
        assert (told["rounds"], told["patience"]) == (8, 4)
        for site in told["measured_at"].values():
            assert {name: getattr(site, name) for name in of_site} == of_site
        assert told["facts"] == {"method": "centralised", "strategy": "fedbn+"}
        assert told["initial"].manifest["seed"] == 5

    def test_all_cores_are_used_where_nothing_else_is_said(self, called):
        assert called()["runtime"][0] == tensorflow_setup.cores()

    @pytest.mark.parametrize(
        ("method", "other_classes"),
        [("centralised", "absent"), ("centralised-partial", "unknown")],
    )
    def test_all_sites_are_pooled_and_each_measures(self, called, method, other_classes):
        told = called(method)
        assert isinstance(told["site"], PooledSite)
        assert told["site"].members == tuple(told["measured_at"].values())
        assert list(told["measured_at"]) == ["nih", "chexpert"]
        assert told["site"].classes == UNION_CLASSES
        assert {m.other_classes for m in told["site"].members} == {other_classes}

    @pytest.mark.parametrize(
        ("site", "classes"), [("nih", NIH_CLASSES), ("chexpert", CHEXPERT_CLASSES)]
    )
    def test_a_site_alone_has_its_own_classes(self, called, site, classes):
        told = called("individual", (site,))
        assert told["site"].classes == classes
        assert list(told["measured_at"]) == [site]

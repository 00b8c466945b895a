import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from cxr_study.jobs.methods import Row
from cxr_study.runs import baseline_run
from cxr_study.studies.plan import run_settings
from cxr_study.studies.runner import baseline_training
from cxr_study.studies.runner.training import Training
from cxr_study.training import BEST_FILE, LAST_FILE, ROUNDS_FILE

SITES, UNION = ("nih", "chexpert"), ("Edema", "Fracture", "Mass")


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Train a row; the runs that were asked for, what was told and what came out.

    The losses of each run are the next of `losses`.
    """

    def train(method, losses, sites=SITES, preset=None, last=False):
        runs, told, left = [], [], iter(losses)

        def record(run, progress):
            runs.append(run)
            run.out.mkdir(parents=True, exist_ok=True)
            made = [{"round": r, "mean_validation_bce": loss} for r, loss in enumerate(next(left))]
            (run.out / ROUNDS_FILE).write_text("".join(json.dumps(line) + "\n" for line in made))
            progress(len(made) - 1, 99)

        monkeypatch.setattr(baseline_run, "train", record)
        training = Training(
            Row(method, "fedbn+"), sites, UNION, Path("/sites"), Path("/body.npz"), preset,
            {"num_rounds": 5, "min_clients": 2}, tmp_path, last,
        )  # fmt: skip
        trained = baseline_training.train(training, told.append)
        return SimpleNamespace(runs=runs, told=told, trained=trained)

    return train


class TestTrain:
    def test_all_data_in_one_place_are_one_training_with_one_model(self, train, tmp_path):
        done = train("centralised-partial", [[None, 0.5, 0.25]])
        [run] = done.runs
        assert (run.method, run.sites) == ("centralised-partial", SITES)
        assert (run.site_files, run.initial_body) == (Path("/sites"), Path("/body.npz"))
        assert run.out.parent == tmp_path
        assert done.trained.models == dict.fromkeys(SITES, run.out / BEST_FILE)
        assert (done.trained.rounds, done.trained.losses) == (2, (None, 0.5, 0.25))
        assert done.trained.column_similarity == ()

    def test_complete_labels_are_trained_as_data_in_one_place(self, train):
        [run] = train("complete", [[0.5]], sites=("nih",)).runs
        assert (run.method, run.sites) == ("centralised", ("nih",))

    def test_each_site_alone_is_a_training_with_a_model_of_its_own(self, train):
        done = train("individual", [[0.5], [0.5]])
        assert [(run.method, run.sites) for run in done.runs] == [
            ("individual", ("nih",)),
            ("individual", ("chexpert",)),
        ]
        assert len({run.out for run in done.runs}) == 2
        assert done.trained.models == {
            site: run.out / BEST_FILE for site, run in zip(SITES, done.runs, strict=True)
        }

    @pytest.mark.parametrize("method", ["individual", "centralised"])
    def test_the_last_models_are_those_where_they_are_asked_for(self, train, method):
        models = train(method, [[0.5], [0.5]], last=True).trained.models
        assert {path.name for path in models.values()} == {LAST_FILE}

    def test_losses_are_means_of_sites_for_the_rounds_that_all_made(self, train):
        done = train("individual", [[None, 0.5, 0.25, 0.125], [0.5, 0.25, 0.75]])
        found = done.trained
        assert done.told == [3, 2]
        assert found.losses == (None, 0.375, 0.5)
        assert found.rounds == 3

    def test_the_settings_are_the_rows(self, train):
        for method in ("individual", "centralised"):
            for run in train(method, [[0.5], [0.5]]).runs:
                row = Row(method, "fedbn+")
                assert run.settings == run_settings.all_settings(
                    row, run.sites, UNION, None, {"num_rounds": 5}
                )

    def test_each_site_alone_has_what_a_preset_says_for_it(self, train):
        nih, chexpert = train("individual", [[0.5], [0.5]], preset="paper-fedfbn").runs
        assert (nih.settings["learning_rate"], chexpert.settings["learning_rate"]) == (1e-5, 5e-5)

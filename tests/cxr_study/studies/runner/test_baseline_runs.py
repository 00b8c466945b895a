import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from cxr_study.jobs.job_settings import JobError
from cxr_study.jobs.methods import Row
from cxr_study.runs import baseline_run
from cxr_study.studies.runner import baseline_runs
from cxr_study.studies.runner.training import Training
from cxr_study.training.baseline import BEST_FILE, ROUNDS_FILE

SITES, UNION = ("nih", "chexpert"), ("Edema", "Fracture", "Mass")
RECIPES = {name: name for name in baseline_run.METHODS} | {"complete": "centralised"}


def knobs(method, settings=None, sites=SITES, preset=None):
    return baseline_runs.knobs(Row(method, "fedavg"), sites, UNION, preset, settings or {})


class TestKnobs:
    @pytest.mark.parametrize(("method", "recipe"), RECIPES.items())
    def test_they_are_those_of_the_methods_recipe_with_the_rows_strategy(self, method, recipe):
        own = {"strategy": "fedavg", "threads": 1}
        if method != "individual":
            own["union"] = "Edema,Fracture,Mass"
        assert knobs(method) == baseline_run.knobs(recipe, {}) | own

    @pytest.mark.parametrize("method", RECIPES)
    def test_what_is_set_wins_and_what_only_a_federation_has_is_left_out(self, method):
        federated = {"min_clients": 2, "head_weighting": "samples", "send": "full"}
        found = knobs(method, {"epochs": 3, "seed": 7, "threads": 2, **federated})
        assert found == knobs(method) | {"epochs": 3, "seed": 7, "threads": 2}

    def test_the_strategy_is_the_rows_whatever_is_set(self):
        assert knobs("centralised", {"strategy": "fedbn+"})["strategy"] == "fedavg"

    def test_a_preset_counts_where_nothing_is_set(self):
        found = knobs("complete", {"batch_size": 8}, preset="paper")
        wanted = {"backbone": "densenet121", "learning_rate": 5e-5, "num_rounds": 150}
        assert found == {**found, **wanted, "batch_size": 8, "strategy": "fedavg"}

    def test_what_a_preset_says_for_one_site_counts_where_that_trains_alone(self):
        rates = {
            (method, sites): knobs(method, sites=sites, preset="paper-fedfbn")["learning_rate"]
            for method, sites in (
                ("individual", ("chexpert",)),
                ("individual", ("nih",)),
                ("individual", SITES[::-1]),
                ("centralised", SITES),
                ("complete", ("chexpert",)),
            )
        }
        assert list(rates.values()) == [5e-5, 1e-5, 1e-5, 1e-5, 1e-5]

    def test_what_is_set_wins_also_over_what_a_preset_says_for_one_site(self):
        found = knobs("individual", {"learning_rate": 0.5}, ("chexpert",), "paper-fedfbn")
        assert found["learning_rate"] == 0.5

    def test_a_value_of_another_kind_is_refused(self):
        with pytest.raises(JobError, match="'epochs' needs a whole number"):
            knobs("individual", {"epochs": "many"})

    def test_an_unknown_preset_is_refused(self):
        with pytest.raises(JobError, match="no preset 'papr'; nearest known: paper"):
            knobs("individual", preset="papr")


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Train a row; the runs that were asked for, what was told and what came out.

    The losses of each run are the next of `losses`.
    """

    def train(method, losses, sites=SITES, preset=None):
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
            {"num_rounds": 5, "min_clients": 2}, tmp_path,
        )  # fmt: skip
        trained = baseline_runs.train(training, told.append)
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

    def test_losses_are_means_of_sites_for_the_rounds_that_all_made(self, train):
        found = train("individual", [[None, 0.5, 0.25, 0.125], [0.5, 0.25, 0.75]]).trained
        assert found.losses == (None, 0.375, 0.5)
        assert found.rounds == 3

    def test_the_knobs_are_the_rows(self, train):
        for method in ("individual", "centralised"):
            for run in train(method, [[0.5], [0.5]]).runs:
                row = Row(method, "fedbn+")
                assert run.knobs == baseline_runs.knobs(
                    row, run.sites, UNION, None, {"num_rounds": 5}
                )

    def test_each_site_alone_has_what_a_preset_says_for_it(self, train):
        nih, chexpert = train("individual", [[0.5], [0.5]], preset="paper-fedfbn").runs
        assert (nih.knobs["learning_rate"], chexpert.knobs["learning_rate"]) == (1e-5, 5e-5)

    def test_how_far_it_is_can_be_followed(self, train):
        assert train("individual", [[0.5, 0.5], [0.5, 0.5, 0.5]]).told == [1, 2]

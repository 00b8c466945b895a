from pathlib import Path

import pytest

from cxr_study.jobs import job_folder, job_templates
from cxr_study.jobs.methods import Row
from cxr_study.runs import method_job
from cxr_study.runs.finished_run import checkpoint_folder

SITES = ("nih", "chexpert")
UNION = ("Edema", "Fracture", "Mass")
METHODS = ("surgical", "personalised", "vanilla", "partial_loss")
WORKSPACE = Path("/workspace")
OWN_MODELS = [
    Row("personalised", "fedavg"),
    Row("personalised", "fedbn+"),
    Row("surgical", "fedbn"),
    Row("vanilla", "fedbn"),
]


@pytest.fixture
def configured(tmp_path):
    """The job of a row: its settings and its sites."""

    def configure(row, settings=None, sites=SITES, preset=None):
        method_job.configure(
            row, tmp_path / "job", sites=sites, union=UNION, settings=settings or {}, preset=preset
        )
        return job_folder.read_settings(tmp_path / "job"), job_folder.sites(tmp_path / "job")

    return configure


class TestConfigure:
    @pytest.mark.parametrize("method", METHODS)
    def test_it_is_the_methods_job_with_the_rows_strategy_for_all_sites(
        self, configured, method, tmp_path
    ):
        settings, sites = configured(Row(method, "fedavg"))
        job_templates.write(method, tmp_path / "template")
        changed = {"strategy": "fedavg", "threads": 1, "min_clients": 2}
        if "union" in settings:
            changed["union"] = "Edema,Fracture,Mass"
        assert settings == job_folder.read_settings(tmp_path / "template") | changed
        assert sites == SITES

    @pytest.mark.parametrize(
        ("strategy", "weighting", "reported"),
        [
            ("fedbn+", "mean", False),
            ("fedbn+-samples", "samples", False),
            ("fedbn+-positives", "positives", True),
        ],
    )
    def test_columns_are_weighed_as_the_row_says(self, configured, strategy, weighting, reported):
        settings, _ = configured(Row("surgical", strategy))
        assert settings["strategy"] == "fedbn+"
        assert settings["head_weighting"] == weighting
        assert settings["report_counts"] is reported

    def test_all_sites_take_part_in_every_round(self, configured):
        settings, sites = configured(Row("surgical", "fedbn+"), sites=("a", "b", "c"))
        assert (settings["min_clients"], sites) == (3, ("a", "b", "c"))

    def test_what_is_set_wins_over_all_but_the_rows_strategy(self, configured):
        given = {"threads": 3, "batch_size": 8, "seed": 7}
        settings, _ = configured(
            Row("surgical", "fedbn+"), given | {"strategy": "fedavg"}, preset="paper"
        )
        assert settings == {**settings, **given, "strategy": "fedbn+", "learning_rate": 5e-5}

    def test_a_preset_has_its_settings_of_one_site(self, configured, tmp_path):
        configured(Row("surgical", "fedbn+"), preset="paper-fedfbn")
        rates = [
            job_folder.read_settings(tmp_path / "job", site)["learning_rate"] for site in SITES
        ]
        assert rates == [1e-5, 5e-5]


class TestModels:
    @pytest.mark.parametrize(("best", "file"), [(True, "best.npz"), (False, "last.npz")])
    @pytest.mark.parametrize("method", ["surgical", "vanilla", "partial_loss"])
    @pytest.mark.parametrize("strategy", ["fedavg", "fedbn+"])
    def test_there_is_one_for_all_sites(self, method, strategy, best, file):
        row = Row(method, strategy)
        assert not method_job.is_personal(row)
        model = checkpoint_folder(WORKSPACE) / file
        assert method_job.models(row, WORKSPACE, SITES, best=best) == dict.fromkeys(SITES, model)

    @pytest.mark.parametrize(("best", "file"), [(True, "site_best.npz"), (False, "site_last.npz")])
    @pytest.mark.parametrize("row", OWN_MODELS)
    def test_sites_with_variables_of_their_own_have_their_own(self, row, best, file):
        assert method_job.is_personal(row)
        assert method_job.models(row, WORKSPACE, SITES, best=best) == {
            site: checkpoint_folder(WORKSPACE, site) / file for site in SITES
        }

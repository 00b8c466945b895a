from pathlib import Path

import pytest

from cxr_study.jobs import job_folder
from cxr_study.jobs.command_line_settings import JobError
from cxr_study.jobs.job_templates import METHODS
from cxr_study.jobs.presets import PRESETS, apply

JOBS = Path(__file__).parents[3] / "jobs"


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", METHODS)
def test_every_preset_fits_every_method(preset, method, tmp_path):
    sites = ["nih", "chexpert"]
    settings, per_site = apply(preset, {}, {}, sites)
    job = tmp_path / "job"
    job_folder.copy(JOBS / method, job, sites=sites, settings=settings, per_site=per_site)
    found = job_folder.read_settings(job)
    assert {name: found[name] for name in settings} == settings
    assert found["backbone"] == "densenet121" and found["image_size"] == 224


class TestApply:
    def test_the_papers_recipe_is_theirs(self):
        settings, per_site = apply("paper", {}, {}, ["a"])
        wanted = {
            "batch_size": 64, "learning_rate": 5e-5, "warmup_epochs": 15,
            "warmup_learning_rate": 5e-3, "num_rounds": 150, "patience": 25, "epochs": 1,
            "augmentation": "paper", "hidden": 0,
        }  # fmt: skip
        assert {name: settings[name] for name in wanted} == wanted
        assert per_site == {}

    @pytest.mark.parametrize(
        ("settings", "per_site", "sites", "merged"),
        [
            ({}, {}, "nih chexpert", {"chexpert": {"learning_rate": 5e-5}}),
            ({}, {}, "nih-1 nih-2", {}),
            ({"learning_rate": 0.5}, {}, "nih chexpert", {}),
            (
                {"learning_rate": 0.25},
                {"chexpert": {"learning_rate": 0.5}, "nih": {"epochs": 2}},
                "nih chexpert",
                {"chexpert": {"learning_rate": 0.5}, "nih": {"epochs": 2}},
            ),
            (
                {},
                {"chexpert": {"epochs": 2}},
                "chexpert",
                {"chexpert": {"learning_rate": 5e-5, "epochs": 2}},
            ),
        ],
        ids=["its own", "not there", "set for all", "set for one", "another one set"],
    )
    def test_a_rate_of_one_site_stands_under_what_is_set(self, settings, per_site, sites, merged):
        shared, of_sites = apply("paper-fedfbn", settings, per_site, sites.split())
        assert shared["learning_rate"] == settings.get("learning_rate", 1e-5)
        assert of_sites == merged

    def test_without_a_preset_nothing_changes(self):
        given = {"seed": 1}, {"a": {"epochs": 2}}
        assert apply(None, *given, ["a"]) == given

    def test_an_unknown_preset_is_refused_with_the_nearest(self):
        with pytest.raises(JobError, match="no preset 'papers'; nearest known: paper"):
            apply("papers", {}, {}, ["a"])

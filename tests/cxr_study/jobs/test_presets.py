import pytest

from cxr_study.jobs.methods import BEYOND
from cxr_study.jobs.presets import PRESETS, JobError, parse, preset_of, with_preset


@pytest.mark.parametrize(("items", "settings", "per_site"), [
    (["num_rounds=20", "nih:learning_rate=1e-5", "nih:epochs=2"], {"num_rounds": 20},
     {"nih": {"learning_rate": 1e-5, "epochs": 2}}),
    (["x=1", "a:x=1", "x=2", "a:x=2"], {"x": 2}, {"a": {"x": 2}}),
    (["x=true"], {"x": True}, {}), (["x=densenet121"], {"x": "densenet121"}, {}),
    (["x=a=b:c"], {"x": "a=b:c"}, {}), (["x="], {"x": ""}, {}),
])  # fmt: skip
def test_a_value_is_json_or_else_a_text_for_all_sites_or_one(items, settings, per_site):
    found = parse(items)
    assert found == (settings, per_site)
    assert list(map(type, found[0].values())) == list(map(type, settings.values()))


@pytest.mark.parametrize("text", ["x", "=3", ":x=3", "a:=3", ""])
def test_another_form_is_refused(text):
    with pytest.raises(JobError, match=r"--set needs NAME=VALUE, .* or SITE:NAME=VALUE; got"):
        parse([text])


def test_what_is_recommended_is_of_the_method_alone():
    settings, _ = with_preset("recommended", {"num_rounds": 2}, {}, ["a", "b"])
    assert set(settings) <= {*BEYOND, "strategy", "num_rounds"}


class TestApply:
    @pytest.mark.parametrize(("preset", "rate", "warm_up", "rounds", "patience", "own"), [
        ("paper", 5e-5, 5e-3, 150, 0, {}),
        ("paper-version1", 5e-5, 5e-3, 150, 25, {"nih": {"learning_rate": 1e-5}}),
        ("paper-fedfbn", 1e-5, 1e-3, 100, 0, {"chexpert": {"learning_rate": 5e-5}}),
    ])  # fmt: skip
    def test_the_papers_recipes_are_theirs(self, preset, rate, warm_up, rounds, patience, own):
        assert with_preset(preset, {}, {}, ["nih", "chexpert"]) == ({
            "backbone": "densenet121", "image_size": 224, "hidden": 0, "batch_size": 64,
            "epochs": 1, "augmentation": "paper", "learning_rate": rate, "warmup_epochs": 15,
            "warmup_learning_rate": warm_up, "num_rounds": rounds, "patience": patience,
        }, own)  # fmt: skip

    @pytest.mark.parametrize(("settings", "per_site", "sites", "merged"), [
        ({}, {}, "nih chexpert", {"chexpert": {"learning_rate": 5e-5}}),
        ({}, {}, "nih-1 nih-2", {}), ({"learning_rate": 0.5}, {}, "nih chexpert", {}),
        ({"learning_rate": 0.25}, {"chexpert": {"learning_rate": 0.5}, "nih": {"epochs": 2}},
         "nih chexpert", {"chexpert": {"learning_rate": 0.5}, "nih": {"epochs": 2}}),
        ({}, {"chexpert": {"epochs": 2}}, "chexpert",
         {"chexpert": {"learning_rate": 5e-5, "epochs": 2}}),
    ], ids=["its own", "not there", "set for all", "set for one", "another one set"])  # fmt: skip
    def test_a_rate_of_one_site_stands_under_what_is_set(self, settings, per_site, sites, merged):
        shared, of_sites = with_preset("paper-fedfbn", settings, per_site, sites.split())
        assert (shared["learning_rate"], of_sites) == (settings.get("learning_rate", 1e-5), merged)

    def test_two_combine_where_they_do_not_differ_and_are_refused_by_name_where_they_do(self):
        settings, _ = with_preset("radiology,recommended", {"num_rounds": 2}, {}, ["a"])
        both = {**PRESETS["radiology"].settings, **PRESETS["recommended"].settings}
        assert settings == {**both, "num_rounds": 2}
        assert with_preset("recommended,radiology", {"num_rounds": 2}, {}, ["a"])[0] == settings
        combined = "'radiology' and 'paper' cannot be combined: augmentation is radiology in one"
        with pytest.raises(JobError, match=combined):
            with_preset("radiology,paper", {}, {}, ["a"])

    @pytest.mark.parametrize(("changes", "given", "expected"), [
        ({}, None, "recommended"), ({"average_decay": 0.0}, None, "none"),
        ({"average_decay": 0.0}, "recommended", "recommended, but average_decay = 0.0"),
        ({"average_decay": 0.0}, "one of another version", "none"),
        (PRESETS["radiology"].settings, None, "recommended and radiology"),
        ({}, "", "recommended"),
    ])  # fmt: skip
    def test_a_run_says_which_one_its_settings_are_of(self, changes, given, expected):
        settings = {"seed": 3, **PRESETS["recommended"].settings, **changes}
        assert preset_of(settings, given) == expected

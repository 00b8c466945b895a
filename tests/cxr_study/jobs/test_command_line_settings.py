import re

import pytest

from cxr_study.jobs.command_line_settings import (
    JobError,
    check_known,
    check_per_site,
    check_sites,
    parse,
)


@pytest.mark.parametrize(
    ("items", "settings", "per_site"),
    [
        (["num_rounds=20", "nih:learning_rate=1e-5", "nih:epochs=2"],
         {"num_rounds": 20}, {"nih": {"learning_rate": 1e-5, "epochs": 2}}),
        (["x=1", "a:x=1", "x=2", "a:x=2"], {"x": 2}, {"a": {"x": 2}}),
        (["x=true"], {"x": True}, {}),
        (["x=densenet121"], {"x": "densenet121"}, {}),
        (["x=a=b:c"], {"x": "a=b:c"}, {}),
        (["x="], {"x": ""}, {}),
    ],
)  # fmt: skip
def test_a_value_is_json_or_else_a_text_for_all_sites_or_one(items, settings, per_site):
    found = parse(items)
    assert found == (settings, per_site)
    assert list(map(type, found[0].values())) == list(map(type, settings.values()))


@pytest.mark.parametrize("text", ["x", "=3", ":x=3", "a:=3", ""])
def test_another_form_is_refused(text):
    with pytest.raises(JobError, match=r"--set needs NAME=VALUE, .* or SITE:NAME=VALUE; got"):
        parse([text])


@pytest.mark.parametrize("sites", [["a", "a"], ["a b"], ["../x"], [""], []])
def test_sites_need_names_of_their_own(sites):
    check_sites(["nih", "Charité-2", "a.b@c"])  # letters of any language
    with pytest.raises(JobError, match="sites need names"):
        check_sites(sites)


def test_an_unknown_setting_is_refused_with_the_nearest():
    check_known({"rounds": 3}, {"rounds": 12}, "job 'j'")
    with pytest.raises(JobError, match="job 'j' has no setting 'round'; nearest known: rounds"):
        check_known({"round": 3}, {"rounds": 12}, "job 'j'")


@pytest.mark.parametrize(
    ("site", "values", "message"),
    [
        ("x", {"epochs": 2}, "for site 'x', which takes no part; known: a, b"),
        (
            "a",
            {"strategy": "fedbn"},
            "setting 'strategy' must be the same at every site; it is given for site 'a'. Set it "
            "for all of them: strategy=fedbn",
        ),
    ],
)
def test_what_a_site_cannot_have_for_itself_is_refused(site, values, message):
    check_per_site("a", {"epochs": 2}, ["a", "b"])
    with pytest.raises(JobError, match=re.escape(message)):
        check_per_site(site, values, ["a", "b"])

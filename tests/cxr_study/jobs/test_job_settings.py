import re

import pytest

from cxr_study.jobs.job_settings import JobError, check_kinds, check_names, check_number, check_own

KNOWN = {"rounds": 12, "rate": 1e-3, "mixed": False, "strategy": "fedbn"}


@pytest.mark.parametrize("sites", [["a", "a"], ["a b"], ["../x"], [""], []])
def test_sites_need_names_of_their_own(sites):
    with pytest.raises(JobError, match="sites need names"):
        check_names(sites)


def test_letters_of_any_language_make_a_name():
    check_names(["nih", "Charité-2", "a.b@c"])


def test_as_many_sites_as_are_waited_for_are_enough():
    check_number(["a", "b"], 2)
    message = "needs the results of 3 sites; got a, b. Add sites, or set min_clients=2."
    with pytest.raises(JobError, match=re.escape(message)):
        check_number(["a", "b"], 3)


class TestKinds:
    def test_a_value_of_the_knobs_own_kind_passes(self):
        check_kinds({"rounds": 3, "rate": 0.5, "mixed": True, "strategy": "x"}, KNOWN, "job 'j'")

    def test_a_whole_number_is_a_number(self):
        check_kinds({"rate": 1}, KNOWN, "job 'j'")

    def test_an_unknown_knob_is_refused_with_the_nearest(self):
        with pytest.raises(JobError, match="job 'j' has no knob 'round'; nearest known: rounds"):
            check_kinds({"round": 3}, KNOWN, "job 'j'")

    @pytest.mark.parametrize(
        ("name", "value", "kind"),
        [
            ("rounds", "three", "a whole number, as the job's own 12 is; got 'three'"),
            ("rounds", 2.5, "a whole number"),
            ("rounds", True, "a whole number"),
            ("rate", "fast", "a number"),
            ("mixed", 1, "true or false"),
            ("strategy", 121, "a text"),
        ],
    )
    def test_a_value_of_another_kind_is_refused(self, name, value, kind):
        with pytest.raises(JobError, match=f"knob '{name}' needs {kind}"):
            check_kinds({name: value}, KNOWN, "job 'j'")


class TestOwn:
    def test_a_site_that_takes_part_may_differ_in_how_it_trains(self):
        check_own("a", {"rate": 0.5}, ["a", "b"])

    def test_another_one_is_refused(self):
        with pytest.raises(JobError, match="for site 'x', which takes no part; known: a, b"):
            check_own("x", {"rate": 0.5}, ["a", "b"])

    def test_what_must_be_the_same_at_all_is_refused(self):
        message = "'strategy' must be the same .* for site 'a'. Set it for .*: strategy=fedbn"
        with pytest.raises(JobError, match=message):
            check_own("a", {"strategy": "fedbn"}, ["a", "b"])

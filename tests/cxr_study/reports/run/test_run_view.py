"""The words and numbers of a run report."""

import dataclasses

from cxr_study.evaluation.summary_json import RefusedResult, Round
from cxr_study.reports.run import run_view


def notices(summary, **changes):
    """Heading -> text, of a run with changes."""
    changed = dataclasses.replace(summary, **changes)
    return {notice.heading: notice.text for notice in run_view.notices(changed)}


class TestHeadline:
    def test_gives_the_range_of_more_than_three_sites(self, summary):
        site = summary.sites["nih"]
        row = run_view.mean(summary, "global", "chexpert", "all")
        many = dataclasses.replace(
            summary,
            sites={name: site for name in "abcd"},
            means=tuple(
                dataclasses.replace(row, site=name, auroc=value)
                for name, value in zip("abcd", (0.5, 0.75, 0.85, 0.9), strict=True)
            ),
        )
        assert run_view.headline(many).endswith("0.50 to 0.90 (median 0.80) at 4 sites.")

    def test_personal_models_are_not_one_model(self, summary):
        personal = dataclasses.replace(summary, personal=True)
        assert run_view.headline(personal).startswith("A model for every site: mean AUROC ")
        assert run_view.headline(personal) != run_view.headline(summary)
        assert run_view.unlabelled_headline(personal).startswith(
            "A site's model has only the classes"
        )

    def test_says_where_unlabelled_classes_are_above_chance(self, summary):
        assert run_view.unlabelled_headline(summary).endswith("above chance (0.5) at both sites.")
        means = [dataclasses.replace(r, low=0.5) if r.site == "nih" else r for r in summary.means]
        doubtful = dataclasses.replace(summary, means=tuple(means))  # an interval reaches chance
        assert run_view.unlabelled_headline(doubtful).endswith(
            "above chance (0.5) at 1 of 2 sites."
        )

    def test_says_when_there_is_nothing_to_measure(self, summary):
        unmeasured = dataclasses.replace(summary, means=summary.means[:2])
        assert "could not be measured" in run_view.unlabelled_headline(unmeasured)
        everything = {
            name: dataclasses.replace(site, classes=summary.union)
            for name, site in summary.sites.items()
        }
        same = dataclasses.replace(summary, sites=everything)
        assert run_view.unlabelled_headline(same).startswith("Every site labels every class")


class TestNotices:
    def test_phantom_data_come_first_then_small_test_sets_and_undefined_aurocs(self, summary):
        found = notices(summary)
        headings = ["Phantom data.", "Small test set: wide intervals.", "Not defined."]
        assert list(found) == headings
        phantom, small, undefined = found.values()
        assert phantom.endswith("Shows the method's behaviour, not clinical performance.")
        assert small.startswith("1 of 5 AUROCs rest on fewer than 30")
        assert "Fracture at nih, 0.75 (0.62\u20130.81), 5 positives, 95 negatives" in small
        assert undefined.startswith("1 of 6 AUROCs of the global model")

    def test_large_test_sets_of_real_data_need_no_notice(self, summary):
        good = tuple(row for row in summary.test if row.auroc is not None and row.positives > 30)
        assert notices(summary, data="real", note="", test=good) == {}
        assert notices(summary, data="real", note="a note", test=good) == {"Note.": "A note."}

    def test_refusals_missing_sites_and_runs_that_may_improve_are_told(self, summary):
        alone = Round(1, 0.25, {"nih": summary.rounds[1].sites["nih"]})
        refusals = (RefusedResult(1, "nih", "NaN"),)
        found = notices(summary, refusals=refusals, rounds=(summary.rounds[0], alone))
        assert "went on without 1 result;" in found["Results left out."]
        assert found["Missing site."].startswith("chexpert is not in round 1;")
        assert "Not yet converged." in found  # the best round is the last


def test_why_an_auroc_is_not_defined_follows_from_the_counts(summary):
    for positives, negatives, reason in (
        (0, 9, "no positive image in the test split"),
        (9, 0, "no negative image in the test split"),
        (0, 0, "the test split has no label of it"),
        (9, 9, "the model has no such class"),
    ):
        row = dataclasses.replace(summary.test[2], positives=positives, negatives=negatives)
        assert run_view.undefined_reason(row) == reason


def test_the_best_model_is_named_by_its_round_the_final_one_if_no_site_trained_it(summary):
    names = ("the initial model", "the model of round 1", "the final model")
    for number, name in enumerate(names):
        best = dataclasses.replace(summary.best, round=number)
        assert run_view.best_model(dataclasses.replace(summary, best=best)).startswith(name)
    assert run_view.final_round(dataclasses.replace(summary, rounds=summary.rounds[:2])) is None


def test_a_round_lasts_as_long_as_its_slowest_site(summary):
    assert run_view.slowest(summary) == [(20.0, 2.0), (30.0, 2.0), (0.0, 2.0)]
    assert run_view.shares(dataclasses.replace(summary, wall_seconds=50.0))["rest"] == 0


def test_classes_trained_by_most_sites_and_sites_of_this_run_come_first(summary):
    assert run_view.trained_order(summary) == ["Edema", "Fracture", "Hernia"]
    assert (
        run_view.trained_counts(summary) == "Trained: 1 class by 2 sites and 2 classes by 1 site."
    )
    grown = dataclasses.replace(summary, trained_by={"Edema": ("gone", "nih")})
    assert run_view.sites(grown) == ["nih", "chexpert", "gone"]

"""The words and numbers of a run report."""

import dataclasses

import pytest

from cxr_study.evaluation.summary import Refusal, Round
from cxr_study.reports.run import view


def headings(summary):
    return [notice.heading for notice in view.notices(summary)]


def text_of(summary, heading):
    return next(notice.text for notice in view.notices(summary) if notice.heading == heading)


class TestHeadline:
    def test_gives_the_range_of_more_than_three_sites(self, summary):
        site = summary.sites["nih"]
        row = view.mean(summary, "global", "chexpert", "all")
        many = dataclasses.replace(
            summary,
            sites={name: site for name in "abcd"},
            means=tuple(
                dataclasses.replace(row, site=name, auroc=value)
                for name, value in zip("abcd", (0.5, 0.75, 0.85, 0.9), strict=True)
            ),
        )
        assert view.headline(many).endswith("0.50 to 0.90 (median 0.80) at 4 sites.")

    def test_models_of_sites_own_are_not_one_model(self, summary):
        personal = dataclasses.replace(summary, personal=True)
        assert view.headline(personal).startswith("A model for every site: mean AUROC ")
        assert view.headline(personal) != view.headline(summary)
        assert view.unlabelled_headline(personal) == "A site's model has the site's classes only."

    def test_says_that_classes_a_site_lacks_are_above_chance(self, summary):
        assert view.unlabelled_headline(summary).endswith("above chance (0.5) at both sites.")

    def test_counts_sites_whose_interval_reaches_chance_as_not_above(self, summary):
        means = [dataclasses.replace(r, low=0.5) if r.site == "nih" else r for r in summary.means]
        doubtful = dataclasses.replace(summary, means=tuple(means))
        assert view.unlabelled_headline(doubtful).endswith("above chance (0.5) at 1 of 2 sites.")

    def test_says_when_lacked_classes_could_not_be_measured(self, summary):
        unmeasured = dataclasses.replace(summary, means=summary.means[:2])
        assert "could not be measured" in view.unlabelled_headline(unmeasured)

    def test_says_when_every_site_labels_every_class(self, summary):
        everything = {
            name: dataclasses.replace(site, classes=summary.union)
            for name, site in summary.sites.items()
        }
        same = dataclasses.replace(summary, sites=everything)
        assert view.unlabelled_headline(same).startswith("Every site labels every class")


class TestNotices:
    def test_phantom_data_comes_first_and_says_so_once(self, summary):
        first = next(view.notices(summary))
        assert first.heading == "Phantom data."
        assert first.text.endswith("Shows the method's behaviour, not clinical performance.")

    def test_small_test_sets_are_counted_and_the_widest_interval_named(self, summary):
        text = text_of(summary, "Small test set: wide intervals.")
        assert text.startswith("1 of 5 AUROCs rest on fewer than 30")
        assert "Fracture at nih, 0.75 (0.62\u20130.81), 5 positives, 95 negatives" in text

    def test_large_test_sets_of_real_data_need_no_notice(self, summary):
        good = [row for row in summary.test if row.auroc is not None and row.positives > 30]
        fine = dataclasses.replace(summary, data="real", note="", test=tuple(good))
        assert headings(fine) == []

    def test_undefined_aurocs_are_counted(self, summary):
        assert text_of(summary, "Not defined.").startswith("1 of 6 AUROCs of the global model")

    def test_refusals_are_counted(self, summary):
        refused = dataclasses.replace(summary, refusals=(Refusal(1, "nih", "NaN"),))
        assert "went on without 1 result;" in text_of(refused, "Results left out.")

    def test_a_site_missing_in_a_round_is_named(self, summary):
        alone = Round(1, 0.25, {"nih": summary.rounds[1].sites["nih"]})
        missing = dataclasses.replace(summary, rounds=(summary.rounds[0], alone))
        assert text_of(missing, "Missing site.").startswith("chexpert is not in round 1;")

    def test_a_best_round_that_is_the_last_may_not_be_the_end(self, summary):
        assert "Not yet converged." not in headings(summary)
        assert "Not yet converged." in headings(
            dataclasses.replace(summary, rounds=summary.rounds[:2])
        )


class TestUndefined:
    @pytest.mark.parametrize(
        ("positives", "negatives", "reason"),
        [
            (0, 9, "no positive image in the test split"),
            (9, 0, "no negative image in the test split"),
            (0, 0, "the test split has no label of it"),
            (9, 9, "the model has no such class"),
        ],
    )
    def test_reason_follows_from_the_counts(self, summary, positives, negatives, reason):
        row = dataclasses.replace(summary.test[2], positives=positives, negatives=negatives)
        assert view.undefined_reason(row) == reason


class TestBestModel:
    def test_is_named_by_its_round(self, summary):
        assert view.best_model(summary) == "the model of round 1"

    def test_final_model_is_the_one_nobody_trained_on(self, summary):
        best = dataclasses.replace(summary.best, round=2)
        assert view.best_model(dataclasses.replace(summary, best=best)).startswith("the final")
        assert view.final_round(dataclasses.replace(summary, rounds=summary.rounds[:2])) is None


class TestTime:
    def test_a_round_lasts_as_long_as_its_slowest_site(self, summary):
        assert view.slowest(summary) == [(20.0, 2.0), (30.0, 2.0), (0.0, 2.0)]

    def test_rest_is_never_negative(self, summary):
        assert view.shares(dataclasses.replace(summary, wall_seconds=50.0))["rest"] == 0


class TestTaught:
    def test_classes_of_most_sites_come_first(self, summary):
        assert view.trained_order(summary) == ["Edema", "Fracture", "Hernia"]
        assert view.trained_counts(summary) == "Taught: 1 class by 2 sites and 2 classes by 1 site."

    def test_sites_of_an_earlier_run_follow_those_of_this_run(self, summary):
        grown = dataclasses.replace(summary, trained_by={"Edema": ("gone", "nih")})
        assert view.sites(grown) == ["nih", "chexpert", "gone"]

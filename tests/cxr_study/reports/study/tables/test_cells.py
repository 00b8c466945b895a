import pytest
from scipy import stats

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.cells import Cell, Ours, measure
from cxr_study.studies.papers.published_results import AVERAGE, Place
from study_tables import SURGICAL, mean, means, published

PLACE = Place("2", SURGICAL, "global", "nih", "all")
PERSONALISED = Place("2", Row("personalised", "fedbn"), "own", "nih", "all")
OWN = {"method": "personalised", "strategy": "fedbn"}


def reached(*lines, place=PLACE, metric="auroc", settings=("2",)):
    return measure(means(*lines), place, metric, settings)


class TestMeasure:
    def test_mean_sd_and_interval_are_over_seeds(self):
        values, sds = [0.7, 0.8, 0.75], [0.1, 0.2, 0.12]
        ours = reached(
            *(
                mean(value, auroc_sd=sd, seed=seed)
                for seed, (value, sd) in enumerate(zip(values, sds, strict=True))
            )
        )
        low, high = stats.t.interval(0.95, 2, loc=0.75, scale=stats.sem(values))
        assert (ours.value, ours.sd) == (pytest.approx(0.75), pytest.approx(0.14))
        assert (ours.low, ours.high) == (pytest.approx(low), pytest.approx(high))
        assert (ours.runs, ours.seeds, ours.classes) == (3, 3, 14)

    def test_one_seed_has_no_interval(self):
        assert reached(mean(0.7)) == Ours(1, 1, 0.7, 0.1, None, None, 14)

    @pytest.mark.parametrize(
        "other",
        [
            {"setting": "3"}, {"method": "vanilla"}, {"strategy": "fedavg"}, {"model": "nih"},
            {"test": "mimic"}, {"group": "shared"},
        ],
    )  # fmt: skip
    def test_what_is_of_another_place_is_not_in_it(self, other):
        assert reached(mean(0.7), mean(0.1, **other)).value == 0.7
        assert reached(mean(0.1, **other)) == Ours(0, 0, None, None, None, None, 0)

    def test_what_is_not_defined_is_a_finished_run_without_a_value(self):
        assert reached(mean(None)) == Ours(1, 0, None, None, None, None, 0)

    def test_a_seed_that_does_not_define_it_is_left_out(self):
        ours = reached(mean(0.7), mean(None, seed=1))
        assert (ours.runs, ours.seeds, ours.value, ours.classes) == (2, 1, 0.7, 14)

    def test_of_numbers_of_classes_the_smallest_counts(self):
        assert reached(mean(0.7), mean(0.7, seed=1, classes=13)).classes == 13

    def test_bce_has_no_sd(self):
        ours = reached(mean(0.7, bce=0.2), mean(0.7, bce=0.3, seed=1), metric="bce")
        assert (ours.value, ours.sd) == (0.25, None)

    def test_a_single_class_has_no_sd(self):
        assert reached(mean(0.7, auroc_sd=None)).sd is None


class TestOwnModels:
    def test_on_its_own_test_set_a_site_is_measured_with_its_own_model(self):
        lines = [mean(0.8, model="nih", **OWN), mean(0.3, model="chexpert", **OWN)]
        assert reached(*lines, place=PERSONALISED).value == 0.8

    def test_where_its_own_model_lacks_a_class_no_other_stands_in(self):
        lines = [mean(None, model="nih", **OWN), mean(0.3, model="chexpert", **OWN)]
        ours = reached(*lines, place=PERSONALISED)
        assert (ours.runs, ours.value) == (1, None)

    def test_elsewhere_it_is_the_mean_over_the_models_that_have_the_classes(self):
        place = Place("2", PERSONALISED.row, "own", "mimic", "all")
        facts = {"test": "mimic", **OWN}
        lines = [
            mean(0.8, model="nih", **facts),
            mean(0.6, model="chexpert", auroc_sd=0.3, **facts),
            mean(None, model="third", **facts),
        ]
        ours = reached(*lines, place=place)
        assert (ours.value, ours.sd) == (pytest.approx(0.7), pytest.approx(0.2))
        assert (ours.runs, ours.seeds, ours.classes) == (1, 1, 14)

    def test_each_setting_of_an_average_has_its_own_sites(self):
        lines = [
            mean(0.8, model="nih", **OWN),
            mean(0.2, model="chexpert", **OWN),
            mean(0.5, model="nih-1", setting="4", **OWN),
            mean(0.7, model="nih-2", setting="4", **OWN),
        ]
        place = Place(AVERAGE, PERSONALISED.row, "own", "nih", "all")
        ours = reached(*lines, place=place, settings=("2", "4"))
        assert (ours.runs, ours.value) == (1, pytest.approx((0.8 + 0.6) / 2))

    def test_a_named_model_is_measured_on_every_test_set(self):
        place = Place("2", PERSONALISED.row, "chexpert", "nih", "all")
        lines = [mean(0.8, model="nih", **OWN), mean(0.3, model="chexpert", **OWN)]
        assert reached(*lines, place=place).value == 0.3


class TestAverage:
    place = Place(AVERAGE, SURGICAL, "global", "nih", "all")

    def average(self, *lines):
        return reached(*lines, place=self.place, settings=("2", "4"))

    def test_mean_and_sd_are_over_settings_the_interval_over_seeds(self):
        ours = self.average(
            mean(0.7), mean(0.9, setting="4"), mean(0.6, seed=1), mean(0.8, setting="4", seed=1)
        )
        low, high = stats.t.interval(0.95, 1, loc=0.75, scale=stats.sem([0.8, 0.7]))
        assert (ours.value, ours.sd) == (pytest.approx(0.75), pytest.approx(0.02**0.5))
        assert (ours.low, ours.high) == (pytest.approx(low), pytest.approx(high))

    def test_a_seed_without_one_of_the_settings_is_not_finished(self):
        ours = self.average(mean(0.7), mean(0.9, setting="4"), mean(0.1, seed=1, classes=9))
        assert (ours.runs, ours.seeds, ours.value) == (1, 1, pytest.approx(0.8))
        assert ours.classes == 14

    def test_a_seed_that_one_setting_does_not_define_is_left_out(self):
        ours = self.average(mean(0.7), mean(None, setting="4"))
        assert (ours.runs, ours.seeds, ours.value) == (1, 0, None)


def cell(ours=None, theirs=None, metric="auroc", **more):
    return Cell(PLACE, metric, ours or Ours(1, 1, 0.8123, 0.0601, None, None, 14), theirs, **more)


class TestCell:
    @pytest.mark.parametrize(
        ("ours", "shown", "ends"),
        [
            ((1, 1, 0.8123, 0.0601, None, None, 14), "0.812 ± 0.060", ""),
            ((1, 1, 0.25, None, None, None, 14), "0.250", ""),
            ((2, 2, 0.8, 0.1, 0.7504, 0.85, 14), "0.800 ± 0.100", "0.750 to 0.850"),
            ((1, 0, None, None, None, None, 0), "\N{EN DASH}", ""),  # not defined
            ((0, 0, None, None, None, None, 0), "", ""),  # not finished
        ],
    )
    def test_ours_is_shown_as_mean_and_sd_and_the_interval_over_seeds(self, ours, shown, ends):
        made = cell(Ours(*ours))
        assert (made.shown, made.interval_shown) == (shown, ends)

    @pytest.mark.parametrize(
        ("theirs", "metric", "shown"),
        [
            (published(sd=0.07), "auroc", "0.82 ± 0.07"),
            (published(low=0.81, high=0.83), "auroc", "0.82 (0.81 to 0.83)"),
            (published(), "auroc", "0.82"),
            (published(low=0.81, high=0.83, bce=0.15), "bce", "0.15"),
            (published(), "bce", ""),
            (None, "auroc", ""),
        ],
    )
    def test_theirs_is_shown_with_what_is_printed_beside_it(self, theirs, metric, shown):
        assert cell(theirs=theirs, metric=metric).published_shown == shown

    @pytest.mark.parametrize(
        ("value", "shown"),
        [(0.8449, "+0.02"), (0.79, "\N{MINUS SIGN}0.03"), (0.8185, "+0.00"), (0.8215, "+0.00")],
    )
    def test_the_difference_is_ours_minus_theirs_to_their_decimals(self, value, shown):
        both = cell(Ours(1, 1, value, 0.1, None, None, 14), published())
        assert both.difference == pytest.approx(value - 0.82)
        assert both.difference_shown == shown

    def test_bce_is_compared_with_bce(self):
        ours = Ours(1, 1, 0.2, None, None, None, 14)
        assert cell(ours, published(bce=0.15), "bce").difference == pytest.approx(0.05)

    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            (None, published(classes=13)),  # another number of classes
            (Ours(1, 0, None, None, None, None, 0), published()),
            (None, None),
        ],
    )
    def test_what_cannot_be_compared_has_no_difference(self, ours, theirs):
        made = cell(ours, theirs)
        assert made.difference is None and made.difference_shown == ""

    def test_the_mark_is_that_of_its_p(self):
        assert [cell(p=p).mark for p in (None, 0.2, 0.001)] == ["", "ns", "**"]


class TestValues:
    def test_ours_and_theirs_stand_side_by_side(self):
        ours = Ours(2, 2, 0.81237, 0.1, 0.81, 0.82, 14)
        theirs = published(0.82, sd=0.07, low=0.81, high=0.83)
        assert cell(ours, theirs, p=0.04).values() == {
            "setting": "2", "method": "surgical", "strategy": "fedbn+",
            "model": "global", "test": "nih", "group": "all", "metric": "auroc",
            "runs": 2, "seeds": 2, "value": 0.81237, "sd": 0.1, "low": 0.81, "high": 0.82,
            "classes": 14,
            "published": 0.82, "published_sd": 0.07, "published_low": 0.81, "published_high": 0.83,
            "published_classes": 14, "source": "ML4H 2024, Table 2",
            "difference": pytest.approx(-0.00763), "holm": 0.04, "best": False,
        }  # fmt: skip

    def test_sd_and_interval_of_what_is_published_are_of_auroc_alone(self):
        theirs = published(0.82, sd=0.07, low=0.81, high=0.83, bce=0.15)
        found = cell(theirs=theirs, metric="bce").values()
        assert (found["published"], found["published_classes"]) == (0.15, 14)
        assert found["published_sd"] is found["published_low"] is None

    def test_what_there_is_not_is_none(self):
        found = cell(Ours(1, 0, None, None, None, None, 0)).values()
        assert (found["value"], found["runs"]) == (None, 1)
        assert found["published"] is found["source"] is found["difference"] is None

import dataclasses

from cxr_study.data.census.suppression import Tally
from cxr_study.reports.audit import view


class TestHeadline:
    def test_says_how_much_and_from_rarest_to_commonest(self, census):
        assert view.headline(census) == (
            "here: 6 images of 5 patients, 2 classes; positive from 50.0 % (Edema) to 50.0 % "
            "(Edema)."
        )

    def test_does_not_count_patients_that_are_unknown(self, census):
        unknown = dataclasses.replace(census, patients_known=False)
        assert view.headline(unknown).startswith("here: 6 images, patients unknown, 2 classes")

    def test_across_sites_counts_classes_held_by_all_and_by_one(self, shared):
        alone = dataclasses.replace(shared, site="b", classes={"Edema": shared.classes["Edema"]})
        assert view.across_headline([shared, alone]) == (
            "2 sites with 1,200 images label 2 classes: 1 at every site, 1 at one alone."
        )


def test_classes_of_most_sites_come_first(shared):
    alone = dataclasses.replace(shared, site="b", classes={"Mass": shared.classes["Mass"]})
    assert view.union([shared, alone]) == ["Mass", "Edema"]


def test_few_positives_are_marked_in_the_test_split_and_none_anywhere():
    assert [view.is_few(*c) for c in (("test", 29), ("test", 30), ("train", 1), ("train", 0))] == [
        True, False, False, True,
    ]  # fmt: skip


def test_kinds_of_labels_that_nobody_has_are_left_out(census):
    assert view.states_in_use(census) == [
        "positive", "negative", "uncertain", "blank", "not labelled",
    ]  # fmt: skip
    plain = dataclasses.replace(
        census.classes["Edema"], read={s: Tally(0, 0) for s in census.classes["Edema"].read}
    )
    assert view.states_in_use(dataclasses.replace(census, classes={"Edema": plain})) == [
        "positive", "negative",
    ]  # fmt: skip
    assert view.outcomes_in_use(census) == ["positive", "negative", "not labelled"]

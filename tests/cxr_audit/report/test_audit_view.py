import dataclasses

from cxr_audit.census.census import CellCount
from cxr_audit.census.shareable_census import SharedClass
from cxr_audit.report import audit_view


def test_headlines_say_how_much_there_is_and_classes_labelled_by_all_and_by_one(census, shared):
    assert audit_view.headline(census) == (
        "here: 6 images of 5 patients, 2 classes; positive from 50.0 % (Edema) to 50.0 % (Edema)."
    )
    unknown = dataclasses.replace(census, patients_known=False)
    assert audit_view.headline(unknown).startswith("here: 6 images, patients unknown, 2 classes")
    alone = dataclasses.replace(shared, site="b", classes={"Mass": shared.classes["Mass"]})
    assert audit_view.across_headline([shared, alone]) == (
        "2 sites with 1,200 images label 2 classes: 1 at every site, 1 at one alone."
    )
    assert audit_view.union([shared, alone]) == ["Mass", "Edema"]  # those of most sites first


def test_few_positives_are_marked_in_the_test_split_and_none_anywhere():
    assert audit_view.is_few("test", 29) and not audit_view.is_few("test", 30)
    assert audit_view.is_few("train", 0) and not audit_view.is_few("train", 1)


def test_kinds_of_labels_that_no_class_has_are_left_out(census):
    every = ["positive", "negative", "uncertain", "blank", "not labelled"]
    assert audit_view.states_in_use(census) == every
    edema = census.classes["Edema"]
    plain = dataclasses.replace(edema, read=dict.fromkeys(edema.read, CellCount(0, 0)))
    bare = dataclasses.replace(census, classes={"Edema": plain})
    assert audit_view.states_in_use(bare) == ["positive", "negative"]
    assert audit_view.outcomes_in_use(census) == ["positive", "negative", "not labelled"]


def test_notices_of_a_site_say_what_is_wrong_with_it_unknown_patients_first(census):
    unknown = dataclasses.replace(census, patients_known=False)
    found = {notice.heading: notice.text for notice in audit_view.site_notices(unknown)}
    beginnings = {
        "Patients unknown.": "nih has no patient", "Duplicates across splits.": "1 image",
        "2 images cannot be used.": "1 missing and 1 duplicate.",
        "No positive image in train.": "Mass.", "No positive image in validation.": "Edema.",
        "No positive image in test.": "Mass.", "Fewer than 30 positive test images.": "Edema (1).",
        "More uncertain than positive labels.": "Mass (3 uncertain, 1 positive; policy ignore)",
        "Most images are not labelled for": "Mass.",
    }  # fmt: skip
    assert list(found) == list(beginnings)
    for heading, beginning in beginnings.items():
        assert found[heading].startswith(beginning), heading
    positives = {"train": 9, "validation": 9, "test": 30}
    edema = dataclasses.replace(census.classes["Edema"], positives=positives)
    fine = dataclasses.replace(census, duplicates_across=0, bad_images=[], classes={"Edema": edema})
    assert not list(audit_view.site_notices(fine))


def test_notices_across_sites_name_differing_policies_and_threefold_prevalences(shared):
    def found(*sites):
        """Texts about sites; each: policy for uncertain labels, labels of Edema as read."""
        made = []
        for number, (policy, cells) in enumerate(sites):
            read = dict.fromkeys(shared.classes["Edema"].read, 0) | cells
            classes = {"Edema": SharedClass(policy, read)}
            site = {"site": str(number), "images": sum(read.values()), "classes": classes}
            made.append(dataclasses.replace(shared, **site))
        return {notice.heading: notice.text for notice in audit_view.across_notices(made)}

    unsure, sure = {"positive": 50, "uncertain": 50}, {"positive": 50, "negative": 50}
    differing = found(("zeros", unsure), ("ones", unsure))
    assert "Edema (ones, zeros)" in differing["Sites differ in what uncertain labels count as."]
    assert not found(("zeros", unsure), ("zeros", unsure))
    assert not found(("zeros", sure), ("ones", sure))
    rare, common = {"positive": 10, "negative": 90}, {"positive": 40, "negative": 60}
    [text] = found(("zeros", rare), ("zeros", common)).values()
    assert text.startswith("Edema (10.0 % to 40.0 %).")
    [text] = found(("zeros", {"negative": 100}), ("zeros", common)).values()
    assert text.startswith("Edema (0.0 % to 40.0 %).")
    assert not found(("zeros", {"negative": 100}), ("zeros", {"negative": 50}))

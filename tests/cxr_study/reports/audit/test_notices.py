import dataclasses

from cxr_study.data.census.shareable_census import SharedClass
from cxr_study.reports.audit import notices


def texts(notices):
    return {notice.heading: notice.text for notice in notices}


def with_read(shared, name, **cells):
    """A site whose labels of Edema as read are these."""
    read = dict.fromkeys(shared.classes["Edema"].read, 0) | cells
    uncertain = "ones" if name == "b" else "zeros"
    return dataclasses.replace(
        shared,
        site=name,
        images=sum(read.values()),
        classes={"Edema": SharedClass(uncertain, read)},
    )


def test_name_what_is_wrong_with_the_site(census):
    found = texts(notices.of_site(census))
    assert list(found) == [
        "Duplicates across splits.",
        "2 images cannot be used.",
        "No positive image in train.",
        "No positive image in validation.",
        "No positive image in test.",
        "Fewer than 30 positive test images.",
        "More uncertain than positive labels.",
        "Most images are not labelled for",
    ]
    assert found["2 images cannot be used."].startswith("1 missing and 1 duplicate.")
    assert found["No positive image in validation."] == "Edema."
    assert found["Fewer than 30 positive test images."].startswith("Edema (1).")
    assert found["More uncertain than positive labels."].startswith(
        "Mass (3 uncertain, 1 positive; policy ignore)."
    )
    assert found["Most images are not labelled for"] == "Mass."


def test_unknown_patients_come_first(census):
    first = next(notices.of_site(dataclasses.replace(census, patients_known=False)))
    assert first.heading == "Patients unknown." and first.text.startswith("nih has no patient")


def test_a_site_without_faults_has_none(census):
    fine = dataclasses.replace(
        census,
        duplicates_across=0,
        bad_images=[],
        classes={
            "Edema": dataclasses.replace(
                census.classes["Edema"], positives={"train": 9, "validation": 9, "test": 30}
            )
        },
    )
    assert not list(notices.of_site(fine))


def test_across_sites_name_policies_that_differ_where_labels_are_uncertain(shared):
    unsure = [with_read(shared, name, positive=50, uncertain=50) for name in "ab"]
    found = texts(notices.across(unsure))
    assert "Edema (ones, zeros)" in found["Sites differ in what uncertain labels count as."]
    agreed = [with_read(shared, name, positive=50, uncertain=50) for name in "ac"]
    assert not list(notices.across(agreed))
    sure = [with_read(shared, name, positive=50, negative=50) for name in "ab"]
    assert not list(notices.across(sure))


def test_across_sites_name_threefold_differences_of_prevalence(shared):
    sites = [
        with_read(shared, "a", positive=10, negative=90),
        with_read(shared, "c", positive=40, negative=60),
    ]
    (notice,) = notices.across(sites)
    assert notice.text.startswith("Edema (10.0 % to 40.0 %).")

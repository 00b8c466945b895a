from cxr_audit.census.census import CellCount, count_data


def images(tallies):
    return {name: tally.images for name, tally in tallies.items() if tally.images}


def test_every_row_is_used_or_dropped_for_a_reason(census):
    assert census.rows == 11
    reasons = ("other views", "other sites", "unused in the split", "missing", "duplicate")
    assert {k: v for k, v in census.dropped.items() if v} == dict.fromkeys(reasons, 1)
    assert census.total == CellCount(6, 5) and census.rows - sum(census.dropped.values()) == 6
    bad = [(bad["image"], bad["status"]) for bad in census.bad_images]
    assert bad == [("g", "missing"), ("h", "duplicate")]
    assert census.duplicates_across == 1


def test_patients_views_sex_and_ages_are_counted_over_the_images_used(census):
    assert images(census.views) == {"PA": 3, "AP": 2, "frontal": 1}
    assert images(census.sex) == {"F": 2, "M": 3, "unknown": 1}
    assert images(census.age) == {"30-39": 2, "40-49": 2, "90+": 1, "unknown": 1}
    assert images(census.splits) == {"train": 3, "validation": 1, "test": 2}
    assert census.views["PA"].patients == 2
    assert census.views_read["lateral"] == 1  # as read, every row counts
    assert sum(census.views_read.values()) == 11
    assert list(census.age_quantiles) == [34, 35, 40, 41, 90]
    assert census.per_patient == {"1": 4, "2": 1, "3-5": 0, "6-10": 0, "11+": 0}


def test_labels_are_counted_as_read_and_after_the_policy_of_their_class(census, site_labels):
    edema, mass = census.classes["Edema"], census.classes["Mass"]
    assert images(edema.read) == {"positive": 3, "negative": 1, "uncertain": 1, "blank": 1}
    assert images(mass.read) == {"positive": 1, "negative": 1, "uncertain": 3, "not labelled": 1}
    assert (edema.uncertain, mass.uncertain) == ("zeros", "ignore")
    assert list(edema.labels.values()) == [3, 3, 0, 0]
    assert list(mass.labels.values()) == [1, 1, 0, 4]
    assert edema.positives == {"train": 2, "validation": 0, "test": 1}
    labels, in_split, index = site_labels
    both = in_split.assign(Mass=[1.0, 0, 0, 1, 0, 0, 0, 0])
    assert count_data(labels, both, index).cooccurrence == [[3, 1], [1, 2]]

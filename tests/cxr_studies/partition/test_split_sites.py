import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_studies.partition.split_sites import split_sites
from cxr_study.common.errors import InputError
from cxr_study.data.sites.patient_split import split_patients, without_positives


def table(positive, images=1):
    """One patient per entry, with this label of Mass and so many images."""
    patients = np.repeat([f"p{number:03}" for number in range(len(positive))], images)
    images = [f"{number}.png" for number in range(len(patients))]
    labels = np.repeat(np.array(positive, dtype=float), len(images) // len(positive))
    about = {"view": "", "sex": "", "age": np.nan, "Mass": labels}
    return pd.DataFrame({"image": images, "patient": patients, **about})


@given(st.integers(1, 10), st.integers(0, 150), st.integers(0, 3))
def test_any_number_of_sites_has_the_same_splits_and_cuts_each_stratum_alike(
    sites, positives, seed
):
    rows = table([1] * positives + [0] * (150 - positives), images=2)
    names = [f"site-{number}" for number in range(sites)]
    frame = split_sites(rows, names, seed=seed)
    pd.testing.assert_frame_equal(frame, split_sites(rows[::-1], names, seed=seed))
    whole = split_patients(rows, seed=seed)
    pd.testing.assert_frame_equal(frame[["patient", "split"]], whole)
    positive = frame["patient"] < f"p{positives:03}"
    of_stratum = pd.crosstab([frame["split"], positive], frame["site"])
    of_split = of_stratum.groupby("split").sum()
    for counts in (of_stratum, of_split, of_split.sum().to_frame().T):
        counts = counts.reindex(columns=names, fill_value=0)
        assert (counts.max(axis=1) - counts.min(axis=1)).max() <= 1


def test_neighbours_in_the_table_are_at_either_site():
    frame = split_sites(table([0] * 200), ["a", "b"], seed=0)
    training = frame["site"][frame["split"] == "train"]
    assert 20 < (training[:70] == "a").sum() < 50
    assert training[::2].nunique() == 2


def test_fewer_patients_than_sites_are_refused_with_the_split():
    rows = table([1, 0] * 10)
    assert split_sites(rows, ["a", "b"], seed=0)["site"].nunique() == 2
    with pytest.raises(InputError, match="'validation' has 2 of the 20 patients for 3 s"):
        split_sites(rows, ["a", "b", "c"], seed=0)


def test_splits_that_lack_a_class_are_found_at_each_site():
    rows = table([1] * 100 + [0] * 100, images=2)
    rows["Edema"] = np.where(rows["patient"] == "p150", 1.0, -1.0)
    frame = split_sites(rows, ["a", "b"], seed=0)
    for site in ("a", "b"):
        own = frame[frame["site"] == site]
        assert without_positives(own, rows, ["Edema"])
        assert not without_positives(own, rows, ["Mass"])

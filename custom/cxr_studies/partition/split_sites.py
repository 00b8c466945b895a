"""Patients into splits and sites at once."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.data.sites.patient_split import (
    positive_patients,
    shuffled,
    split_patients,
    stratified,
)


def split_sites(table: pd.DataFrame, sites: Sequence[str], *, seed: int) -> pd.DataFrame:
    """Put every patient in one split, as `split_patients` does, and cut each split into sites.

    So the test patients of all sites together are the same, however many sites there are. In each
    split and altogether, sites' numbers of patients differ by one at most; in each split also
    their numbers of positive patients.

    Raises:
        InputError: There are too few patients to give each split of each site one.
    """
    split = split_patients(table, seed=seed).set_index("patient")["split"]
    positive = positive_patients(table)
    # Each stratum of each split, one after the other, is dealt out to the sites like cards: of
    # whatever stands together they get equally many. Who goes where, the classes decide.
    cut = pd.DataFrame({"patient": shuffled(table, seed)})
    cut["split"] = cut["patient"].map(split)
    cut["positive"] = cut["patient"].map(positive)
    cut = cut.sort_values(["split", "positive"], kind="stable")
    for name, number in cut["split"].value_counts().items():
        if number < len(sites):
            raise InputError(
                f"split '{name}' has {number} of the {len(cut)} patients for {len(sites)} sites; "
                "needs more patients or fewer sites."
            )
    cut["site"] = np.resize(sites, len(cut))
    for _, dealt in cut.groupby("split"):
        parts = [dealt["patient"][dealt["site"] == site].to_numpy() for site in sites]
        moved = stratified(table, parts, seed)
        whose = {p: site for site, part in zip(sites, moved, strict=True) for p in part}
        cut.loc[dealt.index, "site"] = dealt["patient"].map(whose)
    return cut.sort_values("patient", ignore_index=True)[["patient", "site", "split"]]

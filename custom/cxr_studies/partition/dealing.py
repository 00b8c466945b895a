"""Sites that differ in size, or in the findings of their patients: shares drawn from Dirichlet's.

Of a group of patients K sites get shares p ~ Dir_K(alpha): with alpha 100 nearly equal ones, with
alpha 0.1 mostly one site gets nearly all.

Source:
    Quantity: Li et al., ICDE 2022, arXiv:2102.02079. Labels, shares of each class: Yurochkin et
    al., ICML 2019, arXiv:1905.12022, as in Flower Datasets (`DirichletPartitioner`) and FedLab
    (`hetero_dir_partition`). Hsu et al., arXiv:1909.06335, draw for each of equally large sites the
    shares of the classes instead.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from cxr_studies.partition.skew import Skew
from cxr_study.common.errors import InputError
from cxr_study.data.labels.label_table import POSITIVE, classes

_DRAWS = 100


def rarest_findings(table: pd.DataFrame) -> pd.Series:
    """Group each patient by the rarest class that any of their images is positive for.

    An image may have several findings, and a patient several images, but a patient is at one site.
    The rarest finding decides, for its few patients are what a cut can make scarce; the frequent
    ones that come with it follow.

    Args:
        table: Label table as read.

    Returns:
        The class with the fewest positive patients, of equals the first by name; "" for patients
        without a positive label. Indexed by patient, sorted.
    """
    has = (table[classes(table)] == POSITIVE).groupby(table["patient"]).any()
    has = has[sorted(has, key=lambda name: (has[name].sum(), name))]
    return has.idxmax(axis=1).where(has.any(axis=1), "")


def deal(patients: pd.DataFrame, sites: int, skew: Skew, seed: int) -> np.ndarray:
    """Deal patients out to sites; each site gets the same share of a group in every split.

    Shares are rounded at random up or down, so that no site is favored. They are drawn again, at
    most 100 times, until every split of every site has a patient.

    Args:
        patients: With columns `split`, `group` and `positive` (any label), in random order. Of
            positive and negative patients of a group a site gets the same share.
        sites: Number of sites.
        skew: Gives alpha, the parameter of the Dirichlet distribution.
        seed: Of the draws.

    Returns:
        Number of the site of each patient, from 0; int64 (patients,).

    Raises:
        InputError: No draw gives each split of each site a patient.
    """
    rng = np.random.default_rng(seed)
    pile = patients.groupby(["split", "group", "positive"])
    pile_of, number = pile.ngroup().to_numpy(), pile.cumcount().to_numpy()
    size = pile.size().to_numpy()[pile_of]
    group_of, groups = pd.factorize(patients["group"], sort=True)
    split_of, splits = pd.factorize(patients["split"])
    for _ in range(_DRAWS):
        ends = rng.dirichlet(np.full(sites, skew.alpha), size=len(groups)).cumsum(axis=1)[:, :-1]
        place = (number + rng.random(pile.ngroups)[pile_of]) / size
        site: np.ndarray = (ends[group_of] <= place[:, None]).sum(axis=1)
        if len(np.unique(split_of * sites + site)) == len(splits) * sites:
            return site
    raise InputError(
        f"{sites} sites need a patient each in every split; no draw of {_DRAWS} gives them that of "
        f"{len(patients)} patients with alpha {skew.alpha:g}. Take a larger alpha, more patients "
        "or fewer sites."
    )

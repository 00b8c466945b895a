"""How sites differ in size, or in the findings of their patients; see `dealing`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from cxr_study.common.errors import InputError

LEAST_ALPHA = 0.01
"""Smallest alpha: below it a Dirichlet draw gives nearly all patients to one site."""


@dataclass(frozen=True)
class Skew:
    """How sites differ in size, or in the findings of their patients.

    Attributes:
        by: "quantity": in their numbers of patients, positive and negative ones alike. "label": in
            their patients of each of `dealing.rarest_findings`, and so in size, too.
        alpha: Of the Dirichlet distribution, `LEAST_ALPHA` or more; the smaller, the more uneven.

    Raises:
        InputError: Alpha is out of its range.
    """

    by: Literal["quantity", "label"]
    alpha: float

    def __post_init__(self) -> None:
        if not LEAST_ALPHA <= self.alpha < math.inf:
            raise InputError(
                f"alpha of the {self.by} skew needs a number of {LEAST_ALPHA} or more; got "
                f"{self.alpha}."
            )

    def __str__(self) -> str:
        of = "patients" if self.by == "quantity" else "patients of each rarest finding"
        return f"{of} in Dirichlet({self.alpha:g}) shares"


def skew_of(quantity_skew: float | None, label_skew: float | None) -> Skew | None:
    """The skew of one of two alphas.

    Args:
        quantity_skew: Alpha of unequal numbers of patients; None: equal ones.
        label_skew: Alpha of unequal shares of each finding; None: equal ones.

    Returns:
        None where both are None: sites do not differ.

    Raises:
        InputError: Both are given, or one is out of its range.
    """
    if quantity_skew is not None and label_skew is not None:
        raise InputError("sites have a quantity skew or a label skew; got both. Leave one out.")
    if quantity_skew is not None:
        return Skew("quantity", quantity_skew)
    return None if label_skew is None else Skew("label", label_skew)

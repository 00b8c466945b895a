"""What the papers claim about NIH cut into sites: how many sites, shared classes and images.

The numbers of sites and of shared classes were published twice, the amount of data once. In
arXiv:2301.06683, version 1, "federated learning" is FL with partial loss, and MIMIC has the seven
classes that NIH and CheXpert share. In the conference paper MIMIC has all classes, and partial loss
is nearly as good as surgical aggregation where in version 1 it is far behind.
"""

from cxr_study.jobs.methods import Row
from cxr_study.studies.papers.claimed_numbers import (
    GROWS_WITH_SITES,
    GROWS_WITH_UNSHARED,
    NEARER,
    SAME,
    Claim,
    against,
)

_SURGICAL, _PARTIAL, _VANILLA, _CENTRALISED, _BASELINE = (
    Row(method, "fedbn+")
    for method in ("surgical", "partial_loss", "vanilla", "centralised", "complete")
)
_TESTS = ("nih", "mimic")
_V1 = "arXiv:2301.06683 version 1"
_RESULTS = "ML4H 2024, section 3.1"

_AHEAD = "Surgical aggregation is ahead of centralised training and of vanilla FL"
_PARTIAL_LOSS = "Surgical aggregation is ahead of FL with partial loss"
_NEAREST = "Surgical aggregation comes nearest to the fully labelled baseline"
_WITHIN = "Surgical aggregation comes within 0.017 of the fully labelled baseline"
_LESS_SUSCEPTIBLE = "Surgical aggregation loses less than centralised training"

_ON_AVERAGE = "mean over both ablations, NIH: surgical 0.017 below the baseline's 0.82"


def _of_both(study: str) -> tuple[Claim, ...]:
    """Claims that the conference paper has about both ablations."""
    return (
        Claim(
            _NEAREST,
            study,
            _RESULTS,
            f"{_ON_AVERAGE}, FL with partial loss 0.021",
            against(_SURGICAL, [_PARTIAL, _VANILLA, _CENTRALISED], ["nih"], kind=NEARER),
        ),
        Claim(
            _WITHIN,
            study,
            _RESULTS,
            _ON_AVERAGE,
            against(_SURGICAL, [_BASELINE], ["nih"], margin=0.017),
        ),
    )


_SITES = (
    Claim(
        f"{_AHEAD}, on average over the numbers of sites",
        "clients",
        f"{_RESULTS} and Figure 7; {_V1}, Results",
        "mean over 2 to 10 sites: surgical 0.80 on NIH (all p <= 0.005) and 0.69 on MIMIC (all "
        "p <= 0.03); version 1: surgical 0.81 and 0.73, centralised 0.78 (p = 0.004) and 0.71 "
        "(p = 0.02)",
        against(_SURGICAL, [_CENTRALISED, _VANILLA], _TESTS),
    ),
    Claim(
        f"{_PARTIAL_LOSS}, on average over the numbers of sites",
        "clients",
        f"{_RESULTS} and Figure 7; {_V1}, Results",
        "mean difference over 2 to 10 sites: 0.004 on NIH (p = 0.004), on MIMIC p <= 0.03; version "
        "1: surgical 0.81 and 0.73, partial loss 0.71 (p < 0.001) and 0.69 (p = 0.001)",
        against(_SURGICAL, [_PARTIAL], _TESTS),
    ),
    *_of_both("clients"),
    Claim(
        "The more sites, the further surgical aggregation is ahead of FL with partial loss",
        "clients",
        f"{_V1}, Results, Figures 2 (a) and 3 (a), and Extended Data Table 1",
        "difference with 2 and with 10 sites: 0.06 and 0.14 on NIH, 0.03 and 0.07 on MIMIC",
        (
            *against(_SURGICAL, [_PARTIAL], ["nih"], kind=GROWS_WITH_SITES),
            *against(_SURGICAL, [_PARTIAL], ["mimic"], kind=GROWS_WITH_SITES, group="chexpert"),
        ),
    ),
    Claim(
        f"{_LESS_SUSCEPTIBLE} where there are more sites",
        "clients",
        f"{_V1}, Discussion and Extended Data Table 1",
        "with 2 and with 10 sites on NIH: surgical 0.82 and 0.79, centralised 0.80 and 0.75",
        against(_SURGICAL, [_CENTRALISED], ["nih"], kind=GROWS_WITH_SITES),
    ),
)

_SHARED = (
    Claim(
        f"{_AHEAD}, on average over the numbers of shared classes",
        "shared-classes",
        f"{_RESULTS} and Figure 8; {_V1}, Results",
        "mean over 0 to 14 shared classes: surgical 0.80 on NIH (all p <= 0.03) and 0.69 on MIMIC; "
        "version 1: surgical 0.80 and 0.73, centralised 0.79 (p = 0.01) and 0.72 (p = 0.17)",
        against(_SURGICAL, [_CENTRALISED, _VANILLA], _TESTS),
    ),
    Claim(
        f"{_PARTIAL_LOSS}, on average over the numbers of shared classes",
        "shared-classes",
        f"{_RESULTS} and Figure 8; {_V1}, Results",
        "mean difference over 0 to 14 shared classes on NIH: 0.004 (p = 0.03); version 1: surgical "
        "0.80 and 0.73 on NIH and MIMIC, partial loss 0.74 (p = 0.01) and 0.69 (p = 0.004)",
        against(_SURGICAL, [_PARTIAL], _TESTS),
    ),
    *_of_both("shared-classes"),
    Claim(
        "The fewer classes are shared, the further surgical aggregation is ahead of FL with "
        "partial loss",
        "shared-classes",
        f"{_V1}, Results, Figures 2 (b) and 3 (b), and Extended Data Table 2",
        "difference with all classes shared and with none: 0 and 0.12 on NIH, 0.01 and 0.04 on "
        "MIMIC",
        (
            *against(_SURGICAL, [_PARTIAL], ["nih"], kind=GROWS_WITH_UNSHARED),
            *against(_SURGICAL, [_PARTIAL], ["mimic"], kind=GROWS_WITH_UNSHARED, group="chexpert"),
        ),
    ),
    Claim(
        f"{_LESS_SUSCEPTIBLE} where fewer classes are shared",
        "shared-classes",
        f"{_V1}, Discussion and Extended Data Table 2",
        "with all classes shared and with none on NIH: surgical 0.82 and 0.78, centralised 0.82 "
        "and 0.75",
        against(_SURGICAL, [_CENTRALISED], ["nih"], kind=GROWS_WITH_UNSHARED),
    ),
    Claim(
        "Where all sites label all classes, surgical aggregation, vanilla FL and FL with partial "
        "loss are the same",
        "shared-classes",
        f"ML4H 2024, section 2.1.2; {_V1}, Methods and Extended Data Table 2",
        "version 1, all classes shared, on NIH: surgical 0.82, partial loss 0.82 (p = 0.95)",
        against(_SURGICAL, [_VANILLA, _PARTIAL], ["nih"], kind=SAME, settings=("14",)),
    ),
)

_DATA = (
    Claim(
        "Surgical aggregation is ahead of centralised training and of FL with partial loss, on "
        "average over the amounts of data",
        "data-size",
        f"{_V1}, Results, Figures 2 (c) and 3 (c), and Extended Data Table 3",
        "with 1/10 and with 1/2 of the data at each of two sites: surgical 0.76 and 0.82 on NIH, "
        "0.69 and 0.74 on MIMIC; centralised 0.75 and 0.80, 0.70 and 0.73; partial loss 0.72 and "
        "0.76, 0.61 and 0.71",
        (
            *against(_SURGICAL, [_CENTRALISED, _PARTIAL], ["nih"]),
            *against(_SURGICAL, [_CENTRALISED, _PARTIAL], ["mimic"], group="chexpert"),
        ),
    ),
)

CLAIMS = (*_SITES, *_SHARED, *_DATA)

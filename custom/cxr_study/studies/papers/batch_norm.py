"""What the paper on FedFBN, here FedBN+, claims about batch norm in surgical aggregation.

Its labels of MIMIC are CheXpert's: with NIH's classes they are seven, with all classes thirteen.
The local models of its FedBN are those of the sites; where a test set is no site's, both count.
"""

from cxr_study.jobs.methods import Row
from cxr_study.studies.papers.claimed_numbers import Claim, Comparison, against

_FEDBN_PLUS, _FEDAVG, _FEDBN = (
    Row("surgical", strategy) for strategy in ("fedbn+", "fedavg", "fedbn")
)
_INDIVIDUAL, _CENTRALISED, _BASELINE = (
    Row(method, "fedavg") for method in ("individual", "centralised", "complete")
)
_SITES = ("nih", "chexpert")


def _claim(text: str, source: str, published: str, *comparisons: Comparison) -> Claim:
    source = f"arXiv:2303.06180, section 3 and {source}"
    return Claim(text, "fedfbn", source, published, comparisons)


def _setting(name: str, worse: list[Row], *tests: str, **how: str) -> tuple[Comparison, ...]:
    return against(_FEDBN_PLUS, worse, tests, settings=(name,), **how)


CLAIMS = (
    _claim(
        "Where sites have like images and all classes, FedBN+ is ahead of FedBN",
        "Table 1",
        "on NIH: 0.82 and 0.81 (p = 0.01)",
        *_setting("iid complete", [_FEDBN], "nih"),
    ),
    _claim(
        "There, FedBN+ is ahead of every other model on MIMIC",
        "Table 1",
        "FedBN+ 0.75; baseline 0.74, FedAvg 0.70, FedBN 0.71 (p < 0.001)",
        *_setting("iid complete", [_BASELINE, _FEDAVG, _FEDBN], "mimic", group="chexpert"),
    ),
    _claim(
        "Where sites have like images and other classes, FedBN+ is ahead of FedAvg",
        "Table 2 (b)",
        "on NIH: 0.82 and 0.80 (p < 0.001)",
        *_setting("iid partial", [_FEDAVG], "nih"),
    ),
    _claim(
        "There, on the shared classes, FedBN+ is ahead of the baseline, FedAvg and FedBN",
        "Table 2 (a)",
        "on NIH: FedBN+ 0.89; baseline 0.87, FedAvg 0.88, FedBN 0.87 (p < 0.001)",
        *_setting("iid partial", [_BASELINE, _FEDAVG, _FEDBN], "nih", group="shared"),
    ),
    _claim(
        "There, FedBN+ is ahead of every other global model on MIMIC",
        "Table 2 (b)",
        "FedBN+ 0.75; baseline 0.74, centralised 0.73, FedAvg 0.71 (p < 0.001)",
        *_setting("iid partial", [_BASELINE, _CENTRALISED, _FEDAVG], "mimic", group="chexpert"),
    ),
    _claim(
        "Where sites have other images and like classes, FedBN+ is ahead of FedAvg and FedBN",
        "Table 3",
        "on NIH and CheXpert: FedBN+ 0.84 and 0.77, FedAvg 0.78 and 0.70, FedBN 0.83 (p = 0.01) "
        "and 0.75",
        *_setting("non-iid complete", [_FEDAVG, _FEDBN], *_SITES),
    ),
    _claim(
        "There, FedBN+ is ahead of every other model on MIMIC",
        "Table 3",
        "FedBN+ 0.81; NIH alone 0.74, CheXpert alone 0.79, centralised 0.76, FedAvg 0.76, FedBN "
        "0.79 (p < 0.001)",
        *_setting("non-iid complete", [_CENTRALISED, _FEDAVG, _FEDBN], "mimic"),
        *_setting("non-iid complete", [_INDIVIDUAL], "mimic", model="nih"),
        *_setting("non-iid complete", [_INDIVIDUAL], "mimic", model="chexpert"),
    ),
    _claim(
        "Where sites have other images and other classes, FedBN+ is ahead of FedAvg and FedBN on "
        "the shared classes",
        "Table 4 (a)",
        "on NIH and CheXpert: FedBN+ 0.84 and 0.77, FedAvg 0.83 and 0.74, FedBN 0.82 and 0.75 "
        "(p < 0.001)",
        *_setting("non-iid partial", [_FEDAVG, _FEDBN], *_SITES, group="shared"),
    ),
    _claim(
        "There, over all classes, FedBN+ is ahead of FedAvg, and on CheXpert of FedBN and of "
        "CheXpert alone",
        "Table 4 (b)",
        "on NIH and CheXpert: FedBN+ 0.81 and 0.75, FedAvg 0.79 and 0.72; on CheXpert: FedBN 0.73, "
        "CheXpert alone 0.74 (p < 0.001)",
        *_setting("non-iid partial", [_FEDAVG], *_SITES),
        *_setting("non-iid partial", [_FEDBN, _INDIVIDUAL], "chexpert"),
    ),
    _claim(
        "There, FedBN+ is ahead of every other model on MIMIC",
        "Table 4 (b)",
        "over CheXpert's classes: FedBN+ 0.75; CheXpert alone 0.72, centralised 0.71, FedAvg 0.73, "
        "FedBN 0.72 (p < 0.001)",
        *_setting(
            "non-iid partial",
            [_INDIVIDUAL, _CENTRALISED, _FEDAVG, _FEDBN],
            "mimic",
            group="chexpert",
        ),
    ),
)

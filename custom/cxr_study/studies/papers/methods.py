"""What the papers claim about methods and strategies, wherever all of them are trained alike.

Each claim is tested at both endings. Where all sites label the same classes, the last models of two
rounds are compared.
"""

from collections.abc import Iterable
from itertools import product

from cxr_study.jobs.methods import Row
from cxr_study.studies.papers.claimed_numbers import EVERY_SITE, SAME, Claim, Comparison

_STUDY = "methods"
_ENDINGS = ("equal rounds", "early stopping")
_UNIQUE = ("unique", "elsewhere")
_GLOBAL = ("fedavg", "fedbn+")
"""Strategies with a global model."""


def _ahead(pairs: Iterable[tuple[Row, Row]], groups: Iterable[str]) -> tuple[Comparison, ...]:
    return tuple(
        Comparison(better, worse, EVERY_SITE, group=group, settings=(ending,))
        for (better, worse), group, ending in product(pairs, groups, _ENDINGS)
    )


def _methods(*pairs: tuple[str, str]) -> list[tuple[Row, Row]]:
    """Pairs of methods, with each strategy that both have a global model with."""
    return [(Row(a, strategy), Row(b, strategy)) for (a, b), strategy in product(pairs, _GLOBAL)]


CLAIMS = (
    Claim(
        "Unique classes collapse where what a site does not label counts as absent: in vanilla "
        "federated learning and in centralised training",
        _STUDY,
        "ML4H 2024, Table 3",
        "at their own sites: surgical 0.78 and 0.75, vanilla 0.60 and 0.62, centralised 0.60 and "
        "0.69",
        _ahead(
            _methods(
                ("surgical", "vanilla"),
                ("surgical", "centralised"),
                ("centralised-partial", "centralised"),
            ),
            _UNIQUE,
        ),
    ),
    Claim(
        "Surgical aggregation is ahead of FL with partial loss on unique classes",
        _STUDY,
        "ML4H 2024, Table 3",
        "surgical 0.78 and 0.75, partial loss 0.73 and 0.67",
        _ahead(_methods(("surgical", "partial_loss")), _UNIQUE),
    ),
    Claim(
        "FedBN+ is ahead of FedAvg across sites",
        _STUDY,
        "ML4H 2024, Table 2",
        "surgical aggregation at NIH, CheXpert and MIMIC: FedBN+ 0.81, 0.76, 0.71; FedAvg 0.80, "
        "0.73, 0.70",
        _ahead(
            [
                (Row(method, "fedbn+"), Row(method, "fedavg"))
                for method in ("surgical", "partial_loss", "vanilla")
            ],
            ("elsewhere", "all"),
        ),
    ),
    Claim(
        "Where all sites label the same classes, surgical aggregation and vanilla FL are the same, "
        "bit for bit",
        _STUDY,
        "ML4H 2024, section 2.1.2",
        "the same models",
        tuple(
            Comparison(
                Row("surgical", strategy),
                Row("vanilla", strategy),
                EVERY_SITE,
                SAME,
                settings=("equal classes",),
            )
            for strategy in _GLOBAL
        ),
    ),
)

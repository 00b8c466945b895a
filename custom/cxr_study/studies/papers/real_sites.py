"""What the conference paper claims about NIH and CheXpert as two sites.

Its Table 3 does not name the strategies of its rows; FedBN+ is what its numbers go with.
"""

from cxr_study.jobs.methods import Row
from cxr_study.studies.papers.claimed_numbers import MORE_EVEN, SAME, Claim, Comparison, against

_STUDY = "nih-chexpert"
_ALL, _SEVEN = ("20",), ("7",)
"""Names of its settings: all classes, and the seven that both sites label."""

_SITES = ("nih", "chexpert")
_TESTS = (*_SITES, "mimic")

_SURGICAL, _FEDAVG = Row("surgical", "fedbn+"), Row("surgical", "fedavg")
_INDIVIDUAL, _CENTRALISED = Row("individual", "fedavg"), Row("centralised", "fedavg")
_PERSONALISED = [Row("personalised", strategy) for strategy in ("fedavg", "fedbn", "fedbn+")]
_VANILLA = [Row("vanilla", strategy) for strategy in ("fedavg", "fedbn+")]
_PARTIAL = [Row("partial_loss", strategy) for strategy in ("fedavg", "fedbn+")]
_EXISTING = [_CENTRALISED, *_VANILLA, *_PARTIAL]
_FEDBN_PLUS = [_CENTRALISED, _VANILLA[1], _PARTIAL[1]]


def _claim(text: str, source: str, published: str, *comparisons: Comparison) -> Claim:
    return Claim(text, _STUDY, f"ML4H 2024, {source}", published, comparisons)


_SAME_CLASSES = (
    _claim(
        "With the seven classes that both sites label, surgical aggregation, vanilla FL and "
        "FL with partial loss are the same",
        "sections 2.1.2 and 3.2, Table 1",
        "on NIH, CheXpert and MIMIC with FedBN+: surgical 0.84, 0.77 and 0.76, vanilla 0.84, 0.75 "
        "and 0.75, partial loss 0.83, 0.75 and 0.76",
        *(
            Comparison(Row("surgical", row.strategy), row, test, SAME, settings=_SEVEN)
            for row in (*_VANILLA, *_PARTIAL)
            for test in _TESTS
        ),
    ),
    _claim(
        "With these seven classes, surgical aggregation is ahead of centralised training and of "
        "personalised FL on NIH",
        "section 3.2, Table 1",
        "surgical 0.84; centralised 0.82, personalised 0.83 with each strategy (all p <= 0.03)",
        *against(_SURGICAL, [_CENTRALISED, *_PERSONALISED], ["nih"], settings=_SEVEN),
    ),
    _claim(
        "With these seven classes, surgical aggregation is ahead of the model that NIH trains "
        "alone where that is tested elsewhere",
        "section 3.2, Table 1",
        "surgical and NIH alone: 0.77 and 0.70 on CheXpert (p = 0.002), 0.76 and 0.73 on MIMIC "
        "(p = 0.009)",
        *against(_SURGICAL, [_INDIVIDUAL], ["chexpert", "mimic"], settings=_SEVEN, model="nih"),
    ),
    _claim(
        "With these seven classes, surgical aggregation is ahead on NIH of the model that CheXpert "
        "trains alone",
        "section 3.2, Table 1",
        "surgical 0.84, CheXpert alone 0.81 (p <= 0.03)",
        *against(_SURGICAL, [_INDIVIDUAL], ["nih"], settings=_SEVEN, model="chexpert"),
    ),
)

_OTHER_CLASSES = (
    _claim(
        "Surgical aggregation is ahead of all other ways to a global model",
        "section 3.2, Table 2",
        "on NIH, CheXpert and MIMIC: surgical 0.81, 0.76 and 0.71; with FedBN+ and FedAvg: partial "
        "loss 0.78, 0.71 and 0.68, and 0.77, 0.68 and 0.68, vanilla 0.71, 0.68 and 0.66, and 0.70, "
        "0.68 and 0.64; centralised 0.71, 0.72 and 0.65 (all p <= 0.004)",
        *against(_SURGICAL, _EXISTING, _TESTS, settings=_ALL),
    ),
    _claim(
        "On CheXpert, surgical aggregation is ahead of the models that CheXpert has of its own",
        "section 3.2, Table 2",
        "surgical 0.76; alone 0.74, personalised 0.73, 0.74 and 0.73 with FedAvg, FedBN and "
        "FedBN+ (all p <= 0.03)",
        *against(_SURGICAL, [_INDIVIDUAL, *_PERSONALISED], ["chexpert"], settings=_ALL),
    ),
    _claim(
        "On NIH, surgical aggregation is ahead of personalised FL with FedAvg",
        "section 3.2, Table 2",
        "surgical 0.81, personalised 0.79 (p <= 0.001)",
        *against(_SURGICAL, [_PERSONALISED[0]], ["nih"], settings=_ALL),
    ),
    _claim(
        "In surgical aggregation FedBN+ is ahead of FedAvg on the test sets of the sites",
        "Table 2",
        "on NIH and CheXpert: with FedBN+ 0.81 and 0.76, with FedAvg 0.80 (p <= 0.05) and 0.73 "
        "(p <= 0.01)",
        *against(_SURGICAL, [_FEDAVG], _SITES, settings=_ALL),
    ),
)

_SHARED_AND_UNIQUE = (
    _claim(
        "On the classes that only the tested site labels, surgical aggregation is ahead of all "
        "other ways to a global model",
        "section 3.2, Table 3",
        "on NIH and CheXpert: surgical 0.78 and 0.75, partial loss 0.73 and 0.67, vanilla 0.60 "
        "and 0.62, centralised 0.60 and 0.69 (all p <= 0.01)",
        *against(_SURGICAL, _FEDBN_PLUS, _SITES, group="unique", settings=_ALL),
    ),
    _claim(
        "On the classes that only CheXpert labels, surgical aggregation is ahead of the models "
        "that CheXpert has of its own",
        "section 3.2, Table 3",
        "surgical 0.75, alone 0.71, personalised 0.70 (both p <= 0.008)",
        *against(
            _SURGICAL, [_INDIVIDUAL, _PERSONALISED[2]], ["chexpert"], group="unique", settings=_ALL
        ),
    ),
    _claim(
        "From shared to unique classes, surgical aggregation loses less than all other ways to a "
        "global model",
        "sections 2.4.2 and 3.2, Table 3",
        "shared minus unique on NIH and CheXpert: surgical 0.06 and 0.02, partial loss 0.09 and "
        "0.07, vanilla 0.22 and 0.11, centralised 0.22 and 0.05",
        *against(_SURGICAL, _FEDBN_PLUS, _SITES, kind=MORE_EVEN, settings=_ALL),
    ),
    _claim(
        "On MIMIC, over NIH's classes, surgical aggregation is ahead of every other method",
        "section 3.2, Table 4",
        "surgical 0.76; NIH alone 0.73, personalised 0.74, 0.70 and 0.74 with FedAvg, FedBN and "
        "FedBN+; centralised 0.74; with FedAvg and FedBN+: vanilla 0.72 and 0.75, partial loss "
        "0.74 and 0.74 (all p <= 0.006)",
        *against(
            _SURGICAL,
            [_INDIVIDUAL, *_PERSONALISED, *_EXISTING],
            ["mimic"],
            group="nih",
            settings=_ALL,
        ),
    ),
    _claim(
        "On MIMIC, over CheXpert's classes, surgical aggregation is ahead of all other ways to a "
        "global model and of CheXpert alone",
        "section 3.2, Table 4",
        "surgical 0.70; CheXpert alone 0.67 (p = 0.04), centralised 0.66; with FedAvg and FedBN+: "
        "vanilla 0.62 and 0.63, partial loss 0.66 and 0.64 (all p <= 0.02)",
        *against(
            _SURGICAL,
            [_INDIVIDUAL, *_EXISTING],
            ["mimic"],
            group="chexpert",
            settings=_ALL,
        ),
    ),
)

CLAIMS = (*_SAME_CLASSES, *_OTHER_CLASSES, *_SHARED_AND_UNIQUE)

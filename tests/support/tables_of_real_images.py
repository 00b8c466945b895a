"""Tables of real images: AUROC over folds, with intervals by patient."""

import pandas as pd

from table_text import ALONE, BATCH_NORM, PUBLISHED, RECOMMENDED, REPORTS, UNDEFINED, between, table


def _over_folds(study="real"):
    """(row, other row or None, group) -> mean AUROC or difference, with its interval."""
    read = pd.read_csv(REPORTS / study / "folds.csv", keep_default_na=False)
    found = {}
    for line in read.itertuples():
        other = f"{line.other_method} {line.other_strategy}" if line.other_method else None
        value = (line.auroc, line.auroc_low, line.auroc_high)
        found[f"{line.method} {line.strategy}", other, line.group] = value
    return found


def _cell(found, row, other, group="own"):
    value = found.get((row, other, group))
    return UNDEFINED if value is None else between(*value, signed=other is not None)


def _against(found, titles, other):
    """Lines of titles -> rows: alone, minus another row, and on others' findings."""
    columns = (None, "own"), (other, "own"), (None, "elsewhere, few")
    return [[title, *(_cell(found, row, *of) for of in columns)] for title, row in titles.items()]


REAL = {
    "published: batch norm frozen": PUBLISHED,
    "**`recommended`**": RECOMMENDED,
    "`recommended`, statistics frozen": "surgical fixbn extras",
    "`recommended`, batch norm averaged": "surgical fedavg extras",
    "initial body, head fitted": "surgical fedbn+ columns",
    "partial loss, as `recommended`": "partial_loss fedbn+ extras",
    "pooled data, as `recommended`": "centralised-partial fedbn+ extras",
    "pooled data, batch norm trained": "centralised-partial fedavg",
    "alone, as `recommended`": ALONE,
    "alone, statistics frozen": "individual fixbn extras",
    "alone, initial body, head fitted": "individual fedbn+ columns",
}


def real():
    rows = _against(_over_folds(), REAL, PUBLISHED)
    return table(["", "own findings", "minus published", "others' findings"], rows)


def real_sites(study="real"):
    """What each site has on its own findings, and on each with enough patients, and alone."""
    found = _over_folds(study)
    groups = [group for row, other, group in found if (row, other) == (RECOMMENDED, ALONE)]
    own = [group for group in groups if group.startswith("own, ")]
    pairs = (ALONE, None), (RECOMMENDED, ALONE), (PUBLISHED, ALONE)
    rows = [
        [
            group.replace("own, ", "**") + "**" * (group in own),
            *(_cell(found, *pair, group) for pair in pairs),
        ]
        for site in own
        for group in (site, *(g for g in groups if g.startswith(f"{site.removeprefix('own, ')}: ")))
    ]
    return table(["", "alone", "`recommended` minus alone", "published minus alone"], rows)


def real_pairs():
    """AUROC of each class at each site, with its number of patients over all folds."""
    read = pd.read_csv(REPORTS / "real/folds.csv", keep_default_na=False)
    single = read[read["group"].str.contains(": ") & (read["other_method"] == "")]
    patients = dict(zip(single["group"], single["patients"], strict=True))
    found = _over_folds()
    rows = [
        [*pair.split(": "), str(number)]
        + [_cell(found, row, None, pair) for row in (PUBLISHED, RECOMMENDED, ALONE)]
        for pair, number in sorted(patients.items(), key=lambda each: (-each[1], each[0]))
    ]
    head = ["site", "finding", "patients", "published", "`recommended`", "alone, as `recommended`"]
    return table(head, rows)


TWICE = (
    ("published", (PUBLISHED, None), ("own", "elsewhere, few")),
    ("`recommended` minus published", (RECOMMENDED, PUBLISHED), ("own", "elsewhere, few")),
    ("published minus alone", (PUBLISHED, ALONE), ("own",)),
    (
        "`recommended` minus alone", (RECOMMENDED, ALONE),
        ("own", "shared", "unique", "own, children", "own, north", "own, south",
         "north: Pneumonia", "south: Pneumonia"),
    ),
)  # fmt: skip
"""Title, rows, groups."""


def real_twice():
    """Two trainings of every fold, each with its own interval by patient."""
    both = _over_folds(), _over_folds("real-second")
    of = {"elsewhere, few": "others'", "unique": "own, unshared"}
    rows = [
        [title, of.get(group, group), *(_cell(found, *pair, group) for found in both)]
        for title, pair, groups in TWICE
        for group in groups
    ]
    return table(["", "findings", "seeds 0 to 4", "seeds 5 to 9"], rows)


FULL_AVERAGED = "surgical fedavg full"

FACTORS = {
    PUBLISHED: {
        "**published: batch norm frozen**": PUBLISHED,
        "… learning rate 1e-4": "surgical fedbn+ slow",
        "… learning rate 1e-3": "surgical fedbn+ fast",
        "… batches of 16": "surgical fedbn+ small-batches",
        "… batches of 64": "surgical fedbn+ large-batches",
        "… FedAvgM, momentum 0.5": "surgical fedbn+ momentum",
        "… weight averaging": "surgical fedbn+ average",
        "… refit": "surgical fedbn+ refit",
        "… both options (`recommended`)": "surgical fedbn+ full",
        "… statistics frozen": "surgical fixbn",
        "… statistics frozen, both options": "surgical fixbn full",
        "… batch norm averaged": "surgical fedavg",
    },
    FULL_AVERAGED: {
        "**batch norm averaged, both options**": FULL_AVERAGED,
        "… weight averaging alone": "surgical fedavg average",
        "… refit alone": "surgical fedavg refit",
        "… learning rate 1e-4": "surgical fedavg full-slow",
        "… batches of 64": "surgical fedavg full-large-batches",
        "… FedAvgM, momentum 0.5": "surgical fedavg full-momentum",
    },
}


def real_factors():
    """One factor at a time from both ends, each against its own end."""
    found = _over_folds("real-factors")
    rows = [line for end, titles in FACTORS.items() for line in _against(found, titles, end)]
    return table(["", "own findings", "minus the line in bold above", "others' findings"], rows)


def real_two_by_two():
    """Batch norm frozen or averaged, at two learning rates; averaged minus frozen in the last."""
    found, rows = _over_folds("real-two-by-two"), []
    for rate, variant in (("3e-4", ""), ("1e-4", " slow")):
        frozen, averaged = f"{PUBLISHED}{variant}", f"surgical fedavg{variant}"
        for group, of in (("own", "own"), ("elsewhere, few", "others'")):
            pairs = (frozen, None), (averaged, None), (averaged, frozen)
            rows.append([rate, of, *(_cell(found, *pair, group) for pair in pairs)])
    return table(["learning rate", "findings", "frozen", "averaged", "averaged minus frozen"], rows)


def real_128():
    """NIH's halves at 128 pixels, each against published and against alone."""
    found = _over_folds("real-128")
    titles = {
        "published: batch norm frozen": (PUBLISHED, None),
        "**`recommended`**": (RECOMMENDED, None),
        "alone, as `recommended`": (ALONE, None),
        "`recommended` minus published": (RECOMMENDED, PUBLISHED),
        "`recommended` minus alone": (RECOMMENDED, ALONE),
        "published minus alone": (PUBLISHED, ALONE),
    }
    groups = ("shared", "unique", "elsewhere")
    rows = [[title, *(_cell(found, *of, each) for each in groups)] for title, of in titles.items()]
    return table(["", "shared (4 pairs)", "own, unshared (2)", "others' findings (2)"], rows)


def real_last():
    """The best model with early stopping, the last of 16 rounds, and their paired difference."""
    read = pd.read_csv(REPORTS / "real-last/folds.csv", keep_default_na=False)
    paired = pd.read_csv(REPORTS / "real-last/last_minus_best.csv", keep_default_na=False)
    paired["scenario"], paired["strategy"] = "", paired["other_strategy"]
    alone = read[read["other_method"] == ""]
    found = {
        (line.scenario, line.strategy, line.group): (line.auroc, line.auroc_low, line.auroc_high)
        for line in pd.concat([alone, paired]).itertuples()
    }
    rows = [
        [BATCH_NORM[strategy]]
        + [f"{found[of, strategy, 'own'][0]:.3f}" for of in ("early stopping", "last")]
        + [between(*found["", strategy, of], signed=True) for of in ("own", "elsewhere, few")]
        for strategy in ("fedbn+", "fixbn", "fedavg")
    ]
    head = ["batch norm", "own: best", "own: last of 16", "own: last minus best"]
    return table([*head, "others': last minus best"], rows)


RULES = {
    "BCE, early": "bce of 16, patience 4",
    "BCE of 16": "bce of 16",
    "BCE of 24": "bce of 24",
    "AUROC, early": "auroc of 16, patience 4",
    "AUROC of 16": "auroc of 16",
    "AUROC of 24": "auroc of 24",
    "last of 16": "last of 16",
    "last of 24": "last of 24",
    "average of 16": "average of 16",
    "average of 24": "average of 24",
}


def real_rounds():
    """The models that several rules would have chosen, of the published method and alone."""
    found = _over_folds("real-rounds")
    rows = []
    for title, rule in RULES.items():
        ours, alone = f"{PUBLISHED} {rule}", f"individual fedbn+ {rule}"
        today = f"{PUBLISHED} {RULES[next(iter(RULES))]}"
        of = (ours, None), (ours, today), (alone, None), (ours, alone)
        rows.append([title, *(_cell(found, *each) for each in of)])
    head = ["the model", "published", "minus the first line", "alone"]
    return table([*head, "published minus alone"], rows)


LATE = {
    "published: batch norm frozen": PUBLISHED,
    "`recommended`": RECOMMENDED,
    "alone, batch norm frozen": "individual fedbn+",
    "alone, as `recommended`": ALONE,
}


def real_late():
    """Published, `recommended` and alone, where training is not stopped early."""
    found = _over_folds("real-rounds")
    columns = (None, "own"), (PUBLISHED, "own"), (ALONE, "own"), (None, "elsewhere, few")
    rows = [[title, *(_cell(found, row, *of) for of in columns)] for title, row in LATE.items()]
    head = ["", "own findings", "minus published", "minus alone, as `recommended`"]
    return table([*head, "others' findings"], rows)


def real_late_sites():
    return real_sites("real-rounds")


TABLES = {
    make.__name__.replace("_", " "): make
    for make in (
        *(real, real_sites, real_pairs, real_factors, real_last, real_late, real_128),
        *(real_late_sites, real_rounds, real_two_by_two, real_twice),
    )
}

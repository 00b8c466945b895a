"""Tables of the documents, computed from the kept csv of studies.

Usage: python tests/support/kept_tables.py

In a document such a table follows a comment of its name, `<!-- table: NAME -->`; called as a
program, this rewrites all of them.
"""

import re
from pathlib import Path

import pandas as pd
from scipy import stats

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "custom/reports"
UNDEFINED = "\N{EN DASH}"

_MARKED = re.compile(r"(<!-- table: ([\w -]+) -->\n)((?:\|.*\n)+)")


def minus(text):
    return text.replace("-", "\N{MINUS SIGN}")


def change(value):
    text = f"{value:+.3f}"
    return minus(text if float(text) else "0.000")


def between(value, low, high, signed=False):
    bounds = f"({minus(f'{low:.3f}')} to {minus(f'{high:.3f}')})"
    return f"{change(value) if signed else minus(f'{value:.3f}')} {bounds}"


def over_seeds(by_seed, signed=False):
    """Mean of one value a seed, ± half its 95 % t interval."""
    if by_seed.empty:
        return UNDEFINED
    half = by_seed.sem() * stats.t.ppf(0.975, len(by_seed) - 1)
    mean = change(by_seed.mean()) if signed else f"{by_seed.mean():.3f}"
    return f"{mean} ± {half:.3f}"


def table(head, rows):
    head, *lines = (f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in (head, *rows))
    return head + "|---" * (head.count("|") - 1) + "|\n" + "".join(lines)


# --- on real pictures: AUROC over folds, with intervals by patient -------------------------------

PUBLISHED, OURS = "surgical fedbn+", "surgical fedavg recommended"
RECOMMENDED, ALONE = "surgical fedbn+ extras", "individual fedbn+ extras"
BATCH_NORM = {
    "fedavg": "averaged", "fedbn": "local", "fedbn+": "frozen", "fixbn": "statistics frozen",
}  # fmt: skip


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


# --- on drawings: means over both sites' test patients, over seeds -------------------------------

GROUPS = ("shared", "unique", "elsewhere", "all")
UNIQUE = ("unique, own site", "unique, other site")


def _by_seed(study, scenario="early stopping"):
    """(group, row) -> AUROC of each seed, by seed."""
    read = pd.read_csv(REPORTS / study / "means.csv")
    read = read[read["scenario"] == scenario]
    here = read[(read["model"] == "global") | (read["model"] == read["test"])]
    means = here.groupby(["group", "method", "strategy", "seed"])["auroc"].mean()
    return {
        (group, f"{method} {strategy}"): each.droplevel([0, 1, 2]).dropna()
        for (group, method, strategy), each in means.groupby(level=[0, 1, 2])
    }


def _personal(row):
    return row.startswith(("individual ", "personalised ")) or row.endswith(" fedbn")


def _of_seeds(found, group, row, less=None):
    nothing = pd.Series(dtype=float)
    if group in ("elsewhere", "all") and any(map(_personal, filter(None, (row, less)))):
        return UNDEFINED  # each has its own classes alone
    own = found.get((group, row), nothing)
    if less is None:
        return over_seeds(own)
    other = found.get((group, less), nothing)
    return over_seeds((own - other).dropna(), signed=True)


def _all_groups(found, titles, of=lambda row: (row,)):
    """Lines of titles -> rows, one cell for each of `GROUPS`."""
    return [
        [title, *(_of_seeds(found, group, *of(row)) for group in GROUPS)]
        for title, row in titles.items()
    ]


def drawings():
    titles = {
        "each hospital alone | 14, 13 | no": "individual fedavg",
        "FL with partial loss | 20 | yes": "partial_loss fedavg",
        "… with soft pseudo-labels | 20 | yes": "partial_loss fedavg soft",
        "batch norm frozen (published) | 20 | no": PUBLISHED,
        "batch norm averaged | 20 | no": "surgical fedavg",
        "**… with weight averaging, refit** | **20** | **no**": OURS,
        "pooled data | 20 | yes": "centralised-partial fedavg",
    }
    head = ["", "classes", "sites learn all names", "7 shared", *UNIQUE, "all 20"]
    return table(head, _all_groups(_by_seed("beyond-finalists"), titles))


def finalists():
    titles = {
        "surgical, batch norm frozen (published)": PUBLISHED,
        "surgical, batch norm averaged": "surgical fedavg",
        "partial loss, batch norm frozen": "partial_loss fedbn+",
        "partial loss, batch norm averaged": "partial_loss fedavg",
        "partial loss, soft pseudo-labels": "partial_loss fedavg soft",
        "pooled data, partial loss": "centralised-partial fedavg",
        "each site alone": "individual fedavg",
    }
    head = ["batch norm averaged, with both, minus …", "shared", *UNIQUE, "all 20"]
    rows = _all_groups(_by_seed("beyond-finalists"), titles, lambda other: (OURS, other))
    return table(head, rows)


def preset():
    titles = {
        "surgical, batch norm frozen (published)": PUBLISHED,
        "**… as `recommended`**": RECOMMENDED,
        "… batch norm statistics frozen": "surgical fixbn",
        "each hospital alone, batch norm trained": "individual fedavg",
        "each hospital alone, as `recommended`": ALONE,
    }
    found = _by_seed("preset")
    rows = _all_groups(found, titles)
    for line, row in zip(rows, titles.values(), strict=True):
        minus_published = _of_seeds(found, "all", row, PUBLISHED)
        line.append(UNDEFINED if row == PUBLISHED else minus_published)
    return table(["", "7 shared", *UNIQUE, "all 20", "all, minus published"], rows)


def noise():
    """Trainings of equal settings by newer code minus by older code, seed by seed."""
    names = ["method", "strategy", "model", "test", "group", "seed"]
    newer, older = (
        pd.read_csv(REPORTS / study / "means.csv").set_index(names)["auroc"]
        for study in ("preset", "beyond-finalists")
    )
    changes = (newer - older).dropna()
    rows = []
    for title, row, model in (
        ("surgical, frozen (published)", ("surgical", "fedbn+"), "global"),
        ("alone, trained", ("individual", "fedavg"), None),
    ):
        for test, name in (("nih", "NIH"), ("chexpert", "CheXpert")):
            here = changes[(*row, model or test, test)]
            cells = [", ".join(map(change, here[group])) for group in ("shared", "unique")]
            cells.append(", ".join(map(change, here["all"])) if model else UNDEFINED)
            rows.append([title, name, *cells])
    return table(["newer minus older, seeds 0, 1, 2", "at", "7 shared", "unique", "all 20"], rows)


# --- NIH and CheXpert, as in the papers: means over seeds, by test set ----------------------------

PLACES = {
    "NIH, its 14": ("nih", "nih"), "CheXpert, its 13": ("chexpert", "chexpert"),
    "MIMIC, all 20": ("mimic", "all"), "NIH, unique": ("nih", "unique"),
    "CheXpert, unique": ("chexpert", "unique"),
}  # fmt: skip
WITHOUT_FEDERATION = ("individual", "centralised", "centralised-partial")


def _batch_norm(method, strategy):
    trained = method in WITHOUT_FEDERATION and strategy == "fedavg"
    return "trained" if trained else BATCH_NORM[strategy]


def _half(line):
    return f"{line.auroc:.3f} ± {(line.auroc_high - line.auroc_low) / 2:.3f}"


def nih_chexpert():
    read = pd.read_csv(REPORTS / "nih-chexpert/seeds.csv", dtype={"scenario": str})
    read = read[(read["scenario"] == "20") & read["auroc"].notna()]
    read = read[(read["model"] == "global") | (read["model"] == read["test"])]
    found = {(of.method, of.strategy, of.test, of.group): _half(of) for of in read.itertuples()}
    rows = [
        [row[0], _batch_norm(*row)]
        + [found.get((*row, *place), UNDEFINED) for place in PLACES.values()]
        for row in dict.fromkeys(key[:2] for key in found)
    ]
    return table(["method", "batch norm", *PLACES], rows)


def methods():
    found = _by_seed("methods")
    order = ("surgical", "partial_loss", "vanilla", "personalised", *reversed(WITHOUT_FEDERATION))
    rows = [tuple(row.split(" ", 1)) for row in {row for _, row in found}]
    rows.sort(key=lambda row: (order.index(row[0]), row[1]))
    titles = {f"{row[0]} | {_batch_norm(*row)}": " ".join(row) for row in rows}
    head = ["method", "batch norm", "shared", *UNIQUE, "all 20"]
    return table(head, _all_groups(found, titles))


# --- the claims at convergence: surgical aggregation minus each other method ----------------------


def _lead(study, other, sites, test, margin):
    """The difference over seeds with its interval, and what that says about the claim."""
    read = pd.read_csv(REPORTS / study / "means.csv", dtype={"scenario": str})
    read = read[(read["scenario"] == sites) & (read["test"] == test) & (read["group"] == "all")]
    by_row = read.set_index(["method", "strategy", "seed"])["auroc"].sort_index()
    if other not in by_row.index.droplevel("seed"):
        return UNDEFINED
    lead = by_row["surgical", "fedbn+"] - by_row[other]
    half = lead.sem() * stats.t.ppf(0.975, len(lead) - 1)
    low, high = lead.mean() - half, lead.mean() + half
    verdict = "holds: " if low > -margin else "**not**: " if high < -margin else ""
    return verdict + between(lead.mean(), low, high, signed=True)


def converged():
    rows = [
        [title, sites, test.upper()]
        + [_lead(f"clients-{of}", row, sites, test, margin) for of in ("12-rounds", "converged")]
        for title, row, tests, margin in (
            ("vanilla, frozen", ("vanilla", "fedbn+"), ("nih", "mimic"), 0),
            ("partial loss, frozen", ("partial_loss", "fedbn+"), ("nih", "mimic"), 0),
            ("centralised, frozen", ("centralised", "fedbn+"), ("nih", "mimic"), 0),
            ("full labels, frozen", ("complete", "fedbn+"), ("nih",), 0.017),
            ("**full labels, trained**", ("complete", "fedavg"), ("nih",), 0.017),
        )
        for sites in ("2", "4")
        for test in tests
    ]
    return table(["against", "sites", "test", "12 rounds", "at convergence"], rows)


# --- a server with many sites -------------------------------------------------------------------


def many_sites():
    read = pd.read_csv(REPORTS / "scale/many_sites.csv").sort_values("sites")
    forms = {"sites": "d", "seconds": ".1f", "cpu_seconds": ".1f", "memory": ",.0f", "wrong": "d"}
    rows = [
        [format(getattr(line, name), form) for name, form in forms.items()]
        for line in read.itertuples()
    ]
    head = ["sites", "seconds a round", "CPU s of the server's job a round", "memory, MB"]
    return table([*head, "wrong results"], rows)


TABLES = {
    make.__name__.replace("_", " "): make
    for make in (
        *(real, real_sites, real_pairs, real_factors, real_last, real_late, real_128),
        *(real_late_sites, real_rounds),
        *(drawings, finalists, preset, noise, methods, converged, many_sites),
    )
}
TABLES["nih-chexpert"] = nih_chexpert


def documents():
    """Documents with such tables -> their text."""
    texts = {path: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.md")
             if ".venv" not in path.parts}  # fmt: skip
    return {path: text for path, text in texts.items() if _MARKED.search(text)}


def made_anew(text):
    """A document with its tables as the csv have them."""
    return _MARKED.sub(lambda found: found[1] + TABLES[found[2]](), text)


def names(text):
    return [found[2] for found in _MARKED.finditer(text)]


if __name__ == "__main__":
    for document, text in documents().items():
        document.write_text(made_anew(text), encoding="utf-8")
        print(document.relative_to(ROOT), *names(text))

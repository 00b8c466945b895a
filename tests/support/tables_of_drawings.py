"""Tables of drawings: means over test patients, over seeds."""

from functools import partial

import pandas as pd
from scipy import stats

from table_text import (
    ALONE,
    BATCH_NORM,
    OURS,
    PUBLISHED,
    RECOMMENDED,
    REPORTS,
    UNDEFINED,
    between,
    change,
    over_seeds,
    table,
)

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
POOLED = "complete"


def _batch_norm(method, strategy):
    trained = method in (*WITHOUT_FEDERATION, POOLED) and strategy == "fedavg"
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


FEDFBN = {
    "NIH in two, all classes": "table-1",
    "NIH in two, some classes": "table-2b",
    "both, shared classes": "table-3",
    "both, all classes": "table-4b",
}
"""Experiment -> the table of it in a study's report."""


def fedfbn():
    """The experiments of the FedFBN paper, with its numbers in brackets."""
    read = pd.read_csv(REPORTS / "fedfbn/tables.csv", dtype={"scenario": str})
    read = read[(read["metric"] == "auroc") & read["value"].notna()]
    tests = {"nih": "nih", "chexpert": "chexpert", "mimic": None}  # of its classes
    rows = {}
    for of in read.itertuples():
        wanted = tests.get(of.test) or of.group
        if of.table not in FEDFBN.values() or of.group != wanted:
            continue
        cell = f"{of.value:.3f} ± {(of.high - of.low) / 2:.3f}"
        cell += f" ({of.published:.2f})" if pd.notna(of.published) else ""
        rows.setdefault((of.table, of.method, of.strategy, of.model), {})[of.test] = cell
    titles = {table: title for title, table in FEDFBN.items()}
    lines = []
    for (place, method, strategy, model), cells in rows.items():
        norm = _batch_norm(method, strategy)
        norm = {"server": "initial, server's body", "local": norm}.get(model, norm)
        who = f"{method}: {model}".removesuffix(": local") if method == "individual" else method
        title = titles.pop(place, "")  # once
        lines.append([title, who, norm, *(cells.get(test, UNDEFINED) for test in tests)])
    return table(["", "method", "batch norm", "NIH", "CheXpert", "MIMIC"], lines)


def _by_scenario(study):
    """AUROC over all classes of every method, a column per scenario."""
    read = pd.read_csv(REPORTS / study / "seeds.csv", dtype={"scenario": str})
    read = read[(read["model"] == "global") & (read["group"] == "all")]
    scenarios, rows = list(dict.fromkeys(read["scenario"])), {}
    for of in read.itertuples():
        row = [of.method, _batch_norm(of.method, of.strategy), of.test.upper()]
        rows.setdefault(tuple(row), {})[of.scenario] = _half(of)
    lines = [[*row, *(cells[name] for name in scenarios)] for row, cells in rows.items()]
    return table(["method", "batch norm", "test", *scenarios], lines)


def methods():
    found = _by_seed("methods")
    order = ("surgical", "partial_loss", "vanilla", "personalised", *reversed(WITHOUT_FEDERATION))
    rows = [tuple(row.split(" ", 1)) for row in {row for _, row in found}]
    rows.sort(key=lambda row: (order.index(row[0]), row[1]))
    titles = {f"{row[0]} | {_batch_norm(*row)}": " ".join(row) for row in rows}
    head = ["method", "batch norm", "shared", *UNIQUE, "all 20"]
    return table(head, _all_groups(found, titles))


def class_imbalance():
    """The weighted and the focal loss beside the plain one."""
    found = _by_seed("class-imbalance", "equal rounds")
    losses = {"plain": "", "weighted": " balanced", "focal": " focal"}
    rows = []
    for method in ("surgical", "partial_loss"):
        plain = f"{method} fedbn+"
        for title, loss in losses.items():
            groups = [_of_seeds(found, group, plain + loss) for group in GROUPS]
            gain = _of_seeds(found, "all", plain + loss, plain) if loss else UNDEFINED
            rows.append([method, title, *groups, gain])
    head = ["method", "loss", "7 shared", *UNIQUE, "all 20", "all, minus plain"]
    return table(head, rows)


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
            ("**centralised, trained**", ("centralised", "fedavg"), ("nih", "mimic"), 0),
            ("full labels, frozen", ("complete", "fedbn+"), ("nih",), 0.017),
            ("**full labels, trained**", ("complete", "fedavg"), ("nih",), 0.017),
        )
        for sites in ("2", "4", "10")
        for test in tests
    ]
    return table(["against", "sites", "test", "12 rounds", "at convergence"], rows)


TABLES = {
    make.__name__.replace("_", " "): make
    for make in (drawings, finalists, preset, noise, methods, converged, class_imbalance)
}
TABLES["nih-chexpert"] = nih_chexpert
TABLES["fedfbn"] = fedfbn
TABLES |= {
    study.replace("-", " "): partial(_by_scenario, study)
    for study in ("data-size", "shared-classes", "skew")
}

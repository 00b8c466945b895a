"""Means over classes as `study_results.by_run` gives them, and tables, made up."""

import pandas as pd

from cxr_studies.papers.published_results import Place, Published
from cxr_studies.plan.row import Row
from cxr_studies.report.tables.layouts import Column, Layout
from cxr_studies.report.tables.tables import build

SURGICAL = Row("surgical", "fedbn+")
NIH = Column("NIH", "nih", ("2",))


def mean(auroc, **other):
    """A line of means; None: not defined."""
    line = {
        "scenario": "2", "method": "surgical", "strategy": "fedbn+", "seed": 0, "model": "global",
        "test": "nih", "group": "all", "classes": 14, "auroc": auroc, "auroc_sd": 0.1,
        "bce": 0.25, "bce_sd": 0.2, **other,
    }  # fmt: skip
    undefined = {"classes": 0, "auroc_sd": None, "bce": None, "bce_sd": None}
    return line if auroc is not None else {**line, **undefined}


def means(*lines):
    """A frame of `mean`."""
    frame = pd.DataFrame(list(lines))
    numbers = ["auroc", "auroc_sd", "bce", "bce_sd"]
    return frame.astype(dict.fromkeys(numbers, float))


def published(auroc=0.82, row=SURGICAL, model="global", scenario="2", **other):
    """What a paper reports, of all classes of NIH."""
    place = Place(scenario, row, model, "nih", "all")
    facts = {**dict.fromkeys(("sd", "low", "high", "bce")), "classes": 14, "mark": "", "p": ""}
    facts |= other
    return Published("ml4h2024", "2", "clients", place, auroc=auroc, **facts)


def table(*lines, columns=(NIH,), rows=(SURGICAL,), title="Sites", data="phantom", **more):
    """A table of means."""
    layout = Layout("nih-all", title, tuple(columns))
    return build(layout, rows, means(*lines), data=data, **more)

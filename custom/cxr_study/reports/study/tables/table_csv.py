"""Tables as one csv file: a line for each cell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

import pandas as pd

from cxr_study.reports.study.tables.cells import Cell
from cxr_study.reports.study.tables.tables import Table


def csv(tables: Iterable[Table]) -> str:
    """Write the cells of tables as csv, unrounded where they are ours.

    Columns: table; setting, method, strategy, model, test, group, metric; what `cells.Ours` has;
    published, published_sd, published_low, published_high, published_classes, source; difference,
    holm (p of a test against surgical aggregation, adjusted), best. A value that there is not is
    empty.
    """
    lines = [{"table": table.name} | _values(cell) for table in tables for cell in table.cells]
    return pd.DataFrame(lines).to_csv(index=False, float_format="%.6g", lineterminator="\n")


def _values(cell: Cell) -> dict[str, object]:
    place, theirs = cell.place, cell.published
    values: dict[str, object] = {
        "setting": place.setting,
        "method": place.row.method,
        "strategy": place.row.strategy,
        "model": place.model,
        "test": place.test,
        "group": place.group,
        "metric": cell.metric,
        **asdict(cell.ours),
        "published": cell.theirs,
        "published_sd": None,
        "published_low": None,
        "published_high": None,
        "published_classes": None,
        "source": None,
        "difference": cell.difference,
        "holm": cell.p,
        "best": cell.best,
    }
    if theirs is not None:
        values |= {"published_classes": theirs.classes, "source": theirs.citation}
        if cell.metric == "auroc":
            values |= {f"published_{name}": getattr(theirs, name) for name in ("sd", "low", "high")}
    return values

"""Differences between rows over folds: the data frame of `across_folds`, drawn."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd

from cxr_studies.analysis.study_results import StudyResults, reference
from cxr_studies.report.figures import style
from cxr_studies.report.figures.style import RC_PARAMS
from cxr_study.reports.page import drawing as page
from cxr_study.reports.page.drawing import svg

_ROW = 0.3  # inches
_TITLES = {
    "own": "all of its own classes",
    "shared": "labelled by others, too",
    "unique": "labelled by it alone",
    "elsewhere": "labelled by others alone",
}


@mpl.rc_context(RC_PARAMS)
def fold_differences(
    results: StudyResults, folds: pd.DataFrame, scenario: str, name: str
) -> str | None:
    """Draw the mean AUROC of every row minus that of the `reference`.

    A panel per group of classes, a point per row with its 95 % interval by patient.

    Args:
        results: Of the study.
        folds: See `across_folds`.
        scenario: Name of the scenario.
        name: See `figures`.

    Returns:
        None where there is nothing to compare.
    """
    ours = reference(results.runs)
    rows = [row for row in style.rows(results) if row != ours]
    if ours is None or not rows:
        return None
    to_ours = folds[
        (folds["scenario"] == scenario)
        & (folds["other_method"] == ours.method)
        & (folds["other_strategy"] == ours.strategy)
    ].set_index(["group", "method", "strategy"])
    groups = [group for group in _TITLES if group in to_ours.index]
    if not groups:
        return None
    figure, panels = style.panels(
        [_TITLES[group] for group in groups], (), height=_ROW * len(rows) + 0.2, most_across=2
    )
    names = [style.row_name(row, [*rows, ours], "\n") for row in rows]
    for axes in panels:
        page.name_rows(axes, names, labelsize=8)
    panels[0].set_ylim(len(rows) - 0.5, -0.5)
    for axes, group in zip(panels, groups, strict=True):
        axes.axvline(0, color=page.MUTED, linewidth=0.9)
        axes.grid(axis="y", visible=False)
        for place, row in enumerate(rows):
            if (where := (group, row.method, row.strategy)) in to_ours.index:
                line = to_ours.loc[where]
                axes.plot([line["auroc"]], [place], **style.marker_style(row))
                ends = [line["auroc_low"], line["auroc_high"]]
                axes.plot(ends, [place, place], color=page.INK, linewidth=1)
    title = f"{scenario}, over folds: AUROC minus that of {style.row_name(ours, [*rows, ours])}"
    return svg(figure, name, title)

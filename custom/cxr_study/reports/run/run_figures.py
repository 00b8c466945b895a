"""The figures of a run report, as SVG elements; see `page.drawing`."""

from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cxr_study.evaluation.summary_json import ClassAuroc, Summary
from cxr_study.reports.page import drawing as page
from cxr_study.reports.page import numbers as page_numbers
from cxr_study.reports.run import run_view


@mpl.rc_context(page.STYLE)
def validation_bce(summary: Summary) -> str:
    """Draw the validation loss over rounds, with the best round marked.

    Args:
        summary: Of the run.

    Returns:
        A thin line for each site and a thick one for their mean; binary cross-entropy over the
        classes that each site labels, in nats. Gaps where a site did not measure.
    """
    mean = [entry.mean_validation_bce for entry in summary.rounds]
    lines = _lines(summary, "validation_bce")
    figure, axes = _curves(summary, lines, pd.Series(mean, dtype=float))
    axes.set_ylabel("validation BCE (lower is better)")
    best = summary.best
    axes.plot(
        [best.round], [best.mean_validation_bce], "o", markersize=10, markerfacecolor="none",
        markeredgecolor=page.INK, markeredgewidth=1.4,
    )  # fmt: skip
    rounds = [entry.round for entry in summary.rounds] or [best.round]
    late = best.round > (rounds[0] + rounds[-1]) / 2
    axes.annotate(
        f"best: {best.made or 'round'} {best.round}, {best.mean_validation_bce:.3f}",
        (best.round, 1.0),
        (-4 if late else 4, 3), xycoords=("data", "axes fraction"), textcoords="offset points",
        ha="right" if late else "left", va="bottom", fontweight="bold", annotation_clip=False,
    )  # fmt: skip
    return page.svg(figure, "validation-bce", "Validation BCE over rounds, mean and per site")


@mpl.rc_context(page.STYLE)
def validation_auroc(summary: Summary) -> str:
    """Draw the validation AUROC over rounds.

    Args:
        summary: Of the run.

    Returns:
        A thin line for each site, over the classes that it labels, and a thick one for their mean.
    """
    lines = _lines(summary, "validation_auroc")
    figure, axes = _curves(summary, lines, lines.mean(axis=1))
    axes.set_ylabel("validation AUROC (higher is better)")
    return page.svg(figure, "validation-auroc", "Validation AUROC over rounds, mean and per site")


@mpl.rc_context(page.STYLE)
def class_aurocs(summary: Summary, site: str) -> str:
    """Draw the AUROC of every class on one site's test split, with 95 % intervals.

    Classes that the site labels come first, then the others; within each group the global model's
    best first. The local model is drawn below the global one, and to the right is the number of
    positive images. The axis is the same for all sites.

    Args:
        summary: Of the run.
        site: Whose test split.

    Returns:
        The figure; of a site that measured by itself with the classes that it labels alone.
    """
    rows = [row for row in summary.test if row.site == site]
    local = {row.class_name: row for row in rows if row.model == "local" and row.auroc is not None}
    ranked = sorted(rows, key=lambda row: (row.auroc is None, -(row.auroc or 0), row.class_name))
    ours = [row for row in ranked if row.model == "global"]
    groups = {
        f"Labelled at {page.short(site)}": [row for row in ours if row.labelled],
        f"Not labelled at {page.short(site)}: learned from other sites": [
            row for row in ours if not row.labelled and summary.data != "elsewhere"
        ],
    }
    shown = {heading: members for heading, members in groups.items() if members}
    heights = [len(members) + 1.2 for members in shown.values()]
    figure = Figure((page.WIDTH, 0.7 + 0.225 * sum(heights)), layout="constrained")
    panels = figure.subplots(len(shown), squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    for axes, (heading, members) in zip(panels, shown.items(), strict=True):
        page.add_heading(axes, heading, _colour(members[0].labelled))
        for y, row in enumerate(members):
            _draw(axes, y - 0.17 * (row.class_name in local), row)
            if row.class_name in local:
                _draw(axes, y + 0.2, local[row.class_name])
        axes.axvline(run_view.CHANCE, color=page.MUTED, linewidth=0.9, linestyle=(0, (4, 2)))
        page.name_rows(axes, [page.short(row.class_name) for row in members])
        axes.set(xlim=(run_view.axis_start(summary), 1.0), ylim=(len(members) - 0.4, -0.6))
        right = axes.secondary_yaxis("right")
        counts = [page_numbers.count(row.positives) for row in members]
        right.set_yticks(range(len(members)), counts)
        right.tick_params(length=0, labelcolor=page.MUTED)
    panels[0].set_title("positive images", loc="right", fontsize=7, color=page.MUTED)
    panels[-1].set_xlabel("AUROC on the test split (dashed: 0.5, chance)")
    name = f"aurocs-{list(summary.sites).index(site)}"
    return page.svg(figure, name, f"AUROC per class on the test split of {site}")


def _lines(summary: Summary, measure: str) -> pd.DataFrame:
    """Arrange a measure of `SiteRound` by round and site.

    Args:
        summary: Of the run.
        measure: "validation_bce" or "validation_auroc".

    Returns:
        A row per round and a column per site; NaN where there is no value.
    """
    values = {
        name: [getattr(entry.sites.get(name), measure, None) for entry in summary.rounds]
        for name in summary.sites
    }
    return pd.DataFrame(values, dtype=float)


def _curves(summary: Summary, lines: pd.DataFrame, mean: pd.Series) -> tuple[Figure, Axes]:
    """Draw a line per site and their mean, with a dashed line at the best round.

    Args:
        summary: Of the run.
        lines: A row per round and a column per site; see `_lines`.
        mean: By round.

    Returns:
        The figure and its axes, still without a label of the vertical axis.
    """
    rounds = [entry.round for entry in summary.rounds]
    figure = Figure((page.WIDTH, 2.9), layout="constrained")
    axes = figure.subplots()
    few = len(rounds) <= 30
    looks = page.site_styles(len(lines.columns))
    for (site, values), (colour, marker) in zip(lines.items(), looks, strict=True):
        style: dict[str, Any] = {"marker": marker if few else None, "markersize": 3.6}
        name = page.short(str(site), 16)
        axes.plot(rounds, values, color=colour, linewidth=1.1, label=name, **style)
    axes.plot(
        rounds, mean, color=page.INK, linewidth=2.4, marker="." if few else None, label="mean"
    )
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
    axes.margins(x=0.03)
    final = run_view.final_round(summary)
    label = "round (the global model that started it)"
    axes.set_xlabel(label if final is None else f"{label}; {final}: the final model")
    figure.legend(loc="outside right upper", frameon=False)
    axes.axvline(summary.best.round, color=page.INK, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    return figure, axes


def _draw(axes: Axes, y: float, row: ClassAuroc) -> None:
    """Draw an AUROC and its interval, or the reason why there is none.

    Args:
        axes: Changed in place.
        y: Height of the row.
        row: Of the global model or a local one, which have different marks.
    """
    if row.auroc is None:
        reason = f"not defined: {row.left_out}"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        looks: dict[str, Any] = {"color": page.MUTED, "fontsize": 7.5, "fontstyle": "italic"}
        page.write_at_row(axes, 0.01, y, reason, bbox=box, **looks)
        return
    local = row.model == "local"
    colour = page.LOCAL if local else _colour(row.labelled)
    if row.low is not None and row.high is not None:
        axes.plot([row.low, row.high], [y, y], color=colour, linewidth=1.3)
    marker, inside = "s" if local else "o" if row.labelled else "D", "white" if local else colour
    looks = {"markerfacecolor": inside, "markersize": 4.2, "clip_on": False}
    axes.plot([row.auroc], [y], marker, color=colour, **looks)


def _colour(labelled: bool) -> str:
    """Colour of the global model on a class that the site labels, or does not label."""
    return page.GLOBAL if labelled else page.UNLABELLED

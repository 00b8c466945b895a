"""A comparison as text: how figures are put, and the tables for console and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cxr_study.comparison.claims import EQUAL_CLASSES, Finding
from cxr_study.comparison.grid import ENDINGS
from cxr_study.comparison.measures import MEASURES
from cxr_study.comparison.summary import Line, Summary, Verdict
from cxr_study.evaluation.seed_intervals import Interval
from cxr_study.evaluation.verdicts import REPRODUCED
from cxr_study.jobs.methods import Row

NOT_DEFINED, FAILED = "not defined", "failed"


def figure(value: Interval | None) -> str:
    """A mean with its interval: `0.812 (0.795\N{EN DASH}0.829)`."""
    return _put(value, "{:.3f}", "\N{EN DASH}")


def difference(value: Interval | None) -> str:
    """A difference with its interval: `+0.012 (-0.003 to +0.027)`."""
    return _put(value, "{:+.3f}", " to ")


def _put(value: Interval | None, form: str, between: str) -> str:
    if value is None:
        return NOT_DEFINED
    mean = form.format(value.mean)
    if value.low is None or value.high is None:
        return mean
    return f"{mean} ({form.format(value.low)}{between}{form.format(value.high)})"


def cell(line: Line, ending: str, measure: str) -> str:
    """What stands in the table."""
    return figure(line.figures[ending, measure]) if line.trained else FAILED


def heading(summary: Summary, ending: str) -> str:
    """What is said over the table of an ending."""
    setup = summary.setup
    if ending == ENDINGS[0]:
        return f"At equal rounds: the model after {setup.rounds}"
    return (
        f"At early stopping: the best model until none of {setup.patience} rounds was better, at "
        f"least {setup.rounds} and at most {setup.most_rounds} rounds"
    )


def stopped(line: Line) -> str:
    """Rounds of the best models and rounds made, by seed: `14/18, 20/24`."""
    return ", ".join(f"{best}/{made}" for best, made in line.stopped)


def rows(summary: Summary, ending: str) -> Iterator[tuple[str, ...]]:
    """Lines of the table of an ending: method, variant, figures, and rounds at early stopping."""
    for line in summary.lines:
        figures = [cell(line, ending, measure) for measure in MEASURES]
        rounds = [stopped(line)] if ending == ENDINGS[1] else []
        yield (line.row.title, line.row.variant, *figures, *rounds)


def columns(ending: str) -> tuple[str, ...]:
    """Headings of `rows`."""
    return ("method", "strategy", *MEASURES, *(["best/made"] if ending == ENDINGS[1] else []))


def outcome(verdict: Verdict) -> str:
    """How often a claim was reproduced: `reproduced in 10 of 12 comparisons, not decided in 2`."""
    counts = Counter(finding.verdict for finding in verdict.findings)
    total, holds = len(verdict.findings), counts.pop(REPRODUCED, 0)
    others = [f"{name} in {number}" for name, number in sorted(counts.items())]
    return ", ".join([f"{REPRODUCED} in {holds} of {total} comparisons", *others])


def pair(finding: Finding) -> str:
    """Which rows a finding compares."""
    better, worse = finding.better, finding.worse
    if better.method == worse.method:
        return f"{better.title}: {better.variant} against {worse.variant}"
    if better.variant == worse.variant:
        return f"{better.title} against {worse.title} ({better.variant})"
    return f"{name(better)} against {name(worse)}"


def name(row: Row) -> str:
    """Method and variant of a row."""
    return f"{row.title} ({row.variant})"


def failures(summary: Summary) -> list[str]:
    """What is missing, and why."""
    return [f"{cell} failed: {reason}" for cell, reason in summary.failures.items()]


def markdown(summary: Summary) -> str:
    """Both tables, the claims, and what failed."""
    parts = []
    for ending in ENDINGS:
        parts += [f"**{heading(summary, ending)}**", _table(columns(ending), rows(summary, ending))]
    parts.append(f"{note(summary)}")
    for verdict in summary.verdicts:
        parts.append(f"**{verdict.claim.text}**: {outcome(verdict)}.")
        parts.append(_table(FINDING_COLUMNS, map(finding_row, verdict.findings)))
    parts.append(f"**{EQUAL_CLASSES}**: {summary.equal_classes}.")
    parts += [f"- {line}" for line in failures(summary)]
    return "\n\n".join(parts) + "\n"


FINDING_COLUMNS = ("comparison", "mean AUROC of", "at", "difference", "verdict")


def finding_row(finding: Finding) -> tuple[str, ...]:
    """A line of the table of a claim."""
    shown = difference(finding.difference)
    return (pair(finding), finding.measure, finding.ending, shown, finding.verdict)


def note(summary: Summary) -> str:
    """What the figures are, in a sentence or two."""
    over = "of seed 0 alone"
    if summary.seeds > 1:
        data = " (each with patients of its own)" if summary.phantom else ""
        over = f"mean and 95 % t interval over seeds 0 to {summary.seeds - 1}{data}"
    return (
        f"Mean AUROC on the sites' test splits; {over}. "
        f"{NOT_DEFINED.capitalize()}: a site's model lacks the classes. A site that has a model of "
        "its own is measured with that one, on its own test split."
    )


def _table(head: Sequence[str], body: Iterator[tuple[str, ...]]) -> str:
    divided = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in divided)


def print_summary(summary: Summary, console: Console) -> None:
    """Print the tables, the claims, and what failed."""
    for ending in ENDINGS:
        table = Table(title=heading(summary, ending), title_justify="left")
        _, _, *others = columns(ending)
        table.add_column("trained by", no_wrap=True)
        for title in others:
            table.add_column(title)
        for method, variant, *parts in rows(summary, ending):
            shown = (part.replace(" (", "\n", 1).rstrip(")") for part in parts)
            table.add_row(*map(Text, (f"{method}\n{variant}", *shown)))
        console.print(table)
    console.print(Text(note(summary)))
    for verdict in summary.verdicts:
        console.print(Text.assemble((verdict.claim.text, "bold"), f": {outcome(verdict)}."))
    console.print(Text.assemble((EQUAL_CLASSES, "bold"), f": {summary.equal_classes}."))
    for failure in failures(summary):
        console.print(Text(failure, style="bold yellow"))
    console.print(Text("Research only, not for diagnosis.", style="dim"))

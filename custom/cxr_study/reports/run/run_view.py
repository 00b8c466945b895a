"""Headlines, tables and names of a run report, in words and numbers without HTML.

Every function takes a `Summary` or a part of it and computes nothing that is not in it.
"""

import math
import statistics
from collections.abc import Mapping, Sequence

from cxr_study.common.wording import counted, format_rounds, join_names, shortened
from cxr_study.evaluation.summary_json import ClassAuroc, Group, MeanAuroc, Model, Summary
from cxr_study.jobs.methods import BATCH_NORM, method_title
from cxr_study.reports.page import numbers
from cxr_study.reports.run.comparisons import comparisons, why_left_out
from surgical_aggregation.checkpoints.manifest import rounds_in, spans

CHANCE = 0.5
"""AUROC of a model that guesses."""

_MADE = {
    "average": "the average over late rounds",
    "refit": "the model whose columns were refitted after training",
}
"""How a best model was made that is none of a round -> in words."""


def mean(summary: Summary, model: Model, site: str, classes: Group) -> MeanAuroc | None:
    """Find a mean AUROC.

    Args:
        summary: Of the run.
        model: Which of the measured models.
        site: Whose test split.
        classes: Over which of them.

    Returns:
        None when the summary has no such row.
    """
    rows = {(row.model, row.site, row.classes): row for row in summary.means}
    return rows.get((model, site, classes))


COLUMNS: Mapping[Group, str] = {
    "all": "all classes",
    "labelled": "classes it labels",
    "unlabelled": "classes it does not label",
}
"""Classes of a mean -> heading of its column."""


def mean_text(row: MeanAuroc | None) -> str:
    """Write a mean with its interval, and in a second line over how many classes it is.

    Args:
        row: None: it was not measured.

    Returns:
        `no such class` where the group of classes is empty, and `not defined` in one line where
        nothing is known; a mean that only lacks patients keeps its second line.
    """
    if row is None or (row.auroc is None and not row.few):
        return "no such class" if row is not None and row.of == 0 else "not defined"
    return f"{numbers.auroc(row, 3)}\nover {row.over}"


def mean_cells(summary: Summary, site: str, model: Model) -> list[str]:
    """Write the means of a model at a site, one for each of the `COLUMNS`.

    A site's own model has a mean over the classes that the site labels, and no other.
    """
    own = model == "local"
    return [
        numbers.UNDEFINED
        if own and classes != "labelled"
        else mean_text(mean(summary, model, site, classes))
        for classes in COLUMNS
    ]


def final_round(summary: Summary) -> int | None:
    """The round of the final model: the last one, if no site trained in it.

    Returns:
        None where there is no such round, as when the sites did not measure the final model.
    """
    if len(summary.rounds) < 2:
        return None
    last = summary.rounds[-1]
    untrained = all(site.train_seconds is None for site in last.sites.values())
    return last.round if untrained else None


def best_model(summary: Summary) -> str:
    """Name the reported model by the round that it started, or by how it was made.

    Returns:
        Such as `the model of round 3` or `the average over late rounds (round 6)`.
    """
    if made := _MADE.get(summary.best.made):
        return f"{made} (round {summary.best.round})"
    if summary.best.round == 0:
        return "the initial model (round 0)"
    if summary.best.round == final_round(summary):
        return f"the final model (round {summary.best.round})"
    return f"the model of round {summary.best.round}"


def headline(summary: Summary) -> str:
    """State the mean AUROC on each site's test split, in one sentence.

    Returns:
        Over all classes of the union; of personal models over those that each site labels.
    """
    if summary.personal:
        return f"A model for every site: mean AUROC {_across_sites(summary, 'labelled')}"
    classes = counted(len(summary.union), "class", "classes")
    return f"One model for {classes}: mean AUROC {_across_sites(summary, 'all')}"


def unlabelled_headline(summary: Summary) -> str:
    """State the mean AUROC over the classes that a site does not label, in a sentence or two.

    Returns:
        With the number of sites where the whole interval is above chance; or why there is no such
        mean: every site labels every class, models are personal, sites measured by themselves, or
        the reasons of each class.
    """
    if summary.personal:
        return "A site's model has only the classes that the site labels."
    lacking = [name for name, site in summary.sites.items() if {*summary.union} - {*site.classes}]
    if not lacking:
        return "Every site labels every class, so no site gains a class from the others."
    rows = [mean(summary, "global", site, "unlabelled") for site in lacking]
    measured = [row for row in rows if row is not None and row.auroc is not None]
    if not measured:
        why = why_left_out(r for r in summary.test if r.model == "global" and not r.labelled)
        if summary.data == "elsewhere":
            why = "every site measured only those that it labels"
        text = "How well the model predicts the classes that a site does not label could not be"
        return f"{text} measured: {why}."
    text = f"On the classes that a site does not label: {_across_sites(summary, 'unlabelled')}"
    above = sum(row.low is not None and row.low > CHANCE for row in measured)
    where = f" at {above} of {len(lacking)} sites"
    if above == len(lacking):
        where = {1: "", 2: " at both sites"}.get(above, f" at all {above} sites")
    return f"{text} The whole interval of the mean is above chance (0.5){where}."


def not_above_chance(summary: Summary) -> list[str]:
    """Name the findings, by hospital, whose interval is not wholly above chance.

    Returns:
        One sentence; none where there is no such finding, or no AUROC has an interval.
    """
    rows = [row for row in measurable(summary) if row.model == "global"]
    doubtful = [row for row in rows if row.low is not None and row.low <= CHANCE]
    parts = [
        f"{shortened(names)} at {site}"
        for site in summary.sites
        if (names := [row.class_name for row in doubtful if row.site == site])
    ]
    return [f"Not shown to be better than guessing: {'; '.join(parts)}."] if parts else []


def headlines(summary: Summary) -> list[str]:
    """The answer of a run: how good its model is, and how far ahead of others.

    Returns:
        For page and terminal, each a sentence or two; see `comparisons` for the last ones.
    """
    return [
        headline(summary),
        unlabelled_headline(summary),
        *not_above_chance(summary),
        *comparisons(summary),
    ]


MODELS: Mapping[Model, str] = {
    "global": "federated",
    "published": "as published",
    "before": "before this run",
    "local": "site alone",
}
"""What a model is called in tables, in their order."""


def models(summary: Summary) -> list[Model]:
    """The models that were measured, in the order of tables.

    Returns:
        Keys of `MODELS`; "global" is always among them.
    """
    measured = {row.model for row in summary.means} | {"global"}
    return [model for model in MODELS if model in measured]


def method(summary: Summary) -> str:
    """Name the method and what happens to batch norm, with the setting.

    Returns:
        Such as `Surgical aggregation, batch norm frozen (strategy: fedbn+)`; the strategy of a
        package by the setting alone.
    """
    strategy = summary.made.get("Strategy")
    title = method_title(summary.job)
    if strategy is None:
        return title
    return f"{title}, {BATCH_NORM.get(strategy, 'own strategy')} (strategy: {strategy})"


def is_interrupted(summary: Summary) -> bool:
    """Whether the run made fewer rounds than were asked for, and not because of early stopping."""
    planned = summary.planned_rounds or 0
    return summary.num_rounds < planned and not summary.stopped_early


def rounds_made(summary: Summary) -> str:
    """Write how many rounds were made, of how many if some are missing, and which is the best.

    Returns:
        Such as `2 of 6 (best: 1)` or `20 (stopped early; best: 14)`.
    """
    number = str(summary.num_rounds)
    if is_interrupted(summary):
        number += f" of {summary.planned_rounds}"
    return (
        f"{number} ({'stopped early; ' if summary.stopped_early else ''}best: {summary.best.round})"
    )


def measurable(summary: Summary) -> list[ClassAuroc]:
    """The AUROCs that the page lists one by one, of those in `summary.test`.

    Returns:
        Of every model on the classes that the site labels, and of the global model also on the
        others; where sites measured by themselves, on the classes that they label alone.
    """
    here = summary.data != "elsewhere"
    return [row for row in summary.test if row.labelled or (here and row.model == "global")]


def absent(summary: Summary) -> list[str]:
    """Sites of the job that contributed to no round, as far as is known."""
    return [site for site, of in summary.contributions.items() if not of.rounds]


def without_part(summary: Summary, site: str) -> str:
    """State that the reported model has nothing of a site; "": it has, or that is not known."""
    late = "" if site in absent(summary) else f" before {best_model(summary)}"
    return f"contributed to no round{late}" * (summary.contributed.get(site) == ())


def absences(summary: Summary) -> list[str]:
    """List of which sites the reported model has nothing, who is missing in which rounds, and why.

    Returns:
        Sentences. If the initial model is reported, it has nothing of any site. Rounds to which no
        site contributed do not count, nor does that of the final model, in which none trains.
    """
    known, final = summary.contributions, final_round(summary)
    trained = [entry for entry in summary.rounds if entry.round != final]
    first = trained[0].round if trained else summary.num_rounds
    made = {each for of in known.values() for each in rounds_in(of.rounds) if each >= first}
    sentences = []
    for site, of in known.items():
        why = f" ({of.reason})" if of.reason else ""
        gone = not of.rounds
        if (nothing := without_part(summary, site)) and (gone or summary.best.round):
            sentences.append(f"{site} {nothing}{why}: the model has nothing of it.")
        if not gone and (missed := made - rounds_in(of.rounds)):
            where = format_rounds(spans(missed))
            sentences.append(f"{site} is not in {where}{why}; means there are over the others.")
    return sentences


def with_rounds(summary: Summary) -> str:
    """List the sites, also of continued runs, each with its rounds that are in the reported model.

    Returns:
        Such as `nih (rounds 0 to 5) and chexpert (round 0)`; "" where it is not known.
    """
    known = summary.contributed.items()
    return join_names([f"{site} ({format_rounds(rounds)})" for site, rounds in known])


def trained_order(summary: Summary) -> list[str]:
    """The classes of the union in the order of the table of who trained what.

    Returns:
        Those trained by most sites first, then by the names of their sites, then by their own.
    """
    by = {name: summary.trained_by.get(name, ()) for name in summary.union}
    return sorted(summary.union, key=lambda name: (-len(by[name]), by[name], name))


def trained_counts(summary: Summary) -> str:
    """State how many classes were trained by how many sites, from most sites to fewest."""
    counts = [len(summary.trained_by.get(name, ())) for name in summary.union]
    parts = [
        f"{counted(counts.count(sites), 'class', 'classes')} by {counted(sites, 'site')}"
        for sites in sorted(set(counts), reverse=True)
    ]
    return f"Trained: {join_names(parts)}." if parts else "The model has no class."


def sites(summary: Summary) -> list[str]:
    """The sites that trained a class of the model.

    Returns:
        Those of the run in its order, then by name those of earlier runs that it continues.
    """
    earlier = {site for names in summary.trained_by.values() for site in names}
    return [*summary.sites, *sorted(earlier - set(summary.sites))]


def axis_start(summary: Summary) -> float:
    """The left end of every AUROC axis, one for all sites, so that they can be compared.

    Returns:
        A multiple of 0.1, at most 0.4, and not above any AUROC or lower end of an interval.
    """
    rows: list[ClassAuroc | MeanAuroc] = [*summary.test, *summary.means]
    values = [value for row in rows for value in (row.auroc, row.low) if value is not None]
    return math.floor(min([CHANCE - 0.1, *values]) * 10) / 10


def unlabelled_is_measured(summary: Summary) -> bool:
    """Whether complete labels, kept for evaluation only, cover classes a site does not label.

    Returns:
        False where sites measured by themselves.
    """
    return summary.data != "elsewhere" and any(
        row.labels == "truth" and not row.labelled and (row.positives or row.negatives)
        for row in summary.test
    )


def _across_sites(summary: Summary, classes: Group) -> str:
    """Write the global model's means across sites, ending with a full stop.

    Args:
        summary: Of the run.
        classes: Over which classes.

    Returns:
        The mean of each site with its interval, for up to three sites, and with classes of too few
        patients where there are any; else range and median.
    """
    rows = [mean(summary, "global", site, classes) for site in summary.sites]
    measured = [row for row in rows if row is not None and row.auroc is not None]
    if not measured:
        return "not defined at any site."
    if len(measured) <= 3:
        means = [f"{numbers.auroc(row)}{_coverage([row])} at {row.site}" for row in measured]
        with_few = [
            f" With {counted(row.few, 'class', 'classes')} of too few patients, the mean at "
            f"{row.site} would be {row.with_few:.2f}."
            for row in measured
            if row.with_few is not None
        ]
        return f"{join_names(means)}.{''.join(with_few)}"
    values = [row.auroc for row in measured if row.auroc is not None]
    spread = f"{min(values):.2f} to {max(values):.2f} (median {statistics.median(values):.2f})"
    return f"{spread}{_coverage(measured)} at {len(measured)} sites."


def _coverage(rows: Sequence[MeanAuroc]) -> str:
    """Write how many classes the means are over; "" where each is over its whole group."""
    if all(row.defined == row.of for row in rows):
        return ""
    defined = [row.defined for row in rows]
    if len(rows) == 1:
        return f" for {defined[0]} of {counted(rows[0].of, 'class', 'classes')}"
    return f" for {min(defined)} to {max(defined)} classes"

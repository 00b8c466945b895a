"""The classes of a federation before it trains: who labels which, and which names look alike.

Sites share a class by its name alone: "Effusion" at one and "Pleural Effusion" at another would
become two columns of the head, each trained by half of the sites.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import yaml
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cxr_study.data.labels.vocabulary import (
    UNION_CLASSES,
    Entry,
    class_name,
    is_class,
    known_alike,
    relation,
    resemblance,
)

_NEGATED = re.compile(
    r"\?|\b(no|not|non|none|nan|without|kein\w*|nicht|ohne|sans|pas|sin)\b|[无未]", re.I
)
"""In a name that denies or doubts a finding; a merge into the finding would invert labels."""


@dataclass(frozen=True)
class SiteClasses:
    """What a site file says about classes.

    Attributes:
        classes: Classes it labels; canonical names where there are any.
        columns: All class columns of its data, after merges.
        distinct: Names it declares to be different from any that resembles them.
    """

    site: str
    dataset: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    distinct: tuple[str, ...] = ()


@dataclass(frozen=True)
class NearDuplicate:
    """Two names that may mean the same class.

    Attributes:
        name: A class of the union that the catalogue does not know.
        other: A class of the union, or one of the study's 20.
        sites: Sites that label `name` and have not declared it distinct.
        suggestion: What these sites can put into their site files.
    """

    name: str
    other: str
    reason: str
    sites: tuple[str, ...]
    suggestion: str


@dataclass(frozen=True)
class NewClass:
    """A name that the catalogue does not know: a class of its own, unless a site merges it."""

    name: str
    sites: tuple[str, ...]
    nearest: tuple[str, ...]


@dataclass(frozen=True)
class PossibleMerge:
    """A merge into `target` that the catalogue knows and a site does not make of its columns."""

    site: str
    target: str
    sources: tuple[str, ...]
    relation: Literal["narrower", "broader"]


@dataclass(frozen=True)
class ClassReport:
    """The classes of a federation.

    Attributes:
        holders: Class -> sites that label it, sorted by class.
        new: Classes that the catalogue does not know, by name.
        near_duplicates: To be decided before training.
        kept_apart: Pairs of the union that the catalogue says must never be merged.
        possible_merges: For information.
    """

    sites: tuple[str, ...]
    holders: Mapping[str, tuple[str, ...]]
    new: tuple[NewClass, ...]
    near_duplicates: tuple[NearDuplicate, ...]
    kept_apart: tuple[Entry, ...]
    possible_merges: tuple[PossibleMerge, ...]

    @property
    def shared(self) -> tuple[str, ...]:
        """Classes that more than one site labels."""
        return tuple(name for name, sites in self.holders.items() if len(sites) > 1)

    @property
    def unique(self) -> tuple[str, ...]:
        """Classes that one site labels."""
        return tuple(name for name, sites in self.holders.items() if len(sites) == 1)


def class_report(sites: Sequence[SiteClasses]) -> ClassReport:
    """Compare the classes of one or more sites.

    Classes of the catalogue are never near-duplicates of each other: it says how they differ.
    """
    union = sorted({name for site in sites for name in site.classes})
    related = (relation(one, other) for one, other in combinations(union, 2))
    holders = {name: tuple(site.site for site in sites if name in site.classes) for name in union}
    return ClassReport(
        sites=tuple(site.site for site in sites),
        holders=holders,
        new=tuple(
            NewClass(name, holders[name], tuple(known_alike(name)))
            for name in union
            if not is_class(name)
        ),
        near_duplicates=tuple(_near_duplicates(sites, union)),
        kept_apart=tuple(
            entry for entry in related if entry is not None and entry.relation == "never"
        ),
        possible_merges=tuple(merge for site in sites for merge in _possible_merges(site, union)),
    )


def _near_duplicates(sites: Sequence[SiteClasses], union: Sequence[str]) -> Iterable[NearDuplicate]:
    undecided = {
        name: tuple(
            site.site
            for site in sites
            if name in site.classes
            and name not in [class_name(given, site.dataset) for given in site.distinct]
        )
        for name in union
        if not is_class(name) and not _NEGATED.search(name)
    }
    for name, holders in undecided.items():
        for other in sorted({*union, *UNION_CLASSES} - {name}):
            if not holders or (other in undecided and (other < name or not undecided[other])):
                continue
            if reason := resemblance(name, other):
                suggestion = (
                    f"if they are the same finding: {_yaml({'merges': {other: [name]}})}; "
                    f"if not: {_yaml({'distinct': [name]})}"
                )
                yield NearDuplicate(name, other, reason, holders, suggestion)


def _possible_merges(site: SiteClasses, union: Sequence[str]) -> Iterable[PossibleMerge]:
    for target in sorted({*union, *UNION_CLASSES}):
        if target in site.columns and target not in site.classes:
            continue  # the site leaves this class out
        found = {name: relation(name, target) for name in site.columns}
        for kind in ("narrower", "broader"):
            sources = tuple(n for n, entry in found.items() if entry and entry.relation == kind)
            if sources and not (kind == "broader" and target in site.columns):
                yield PossibleMerge(site.site, target, sources, kind)


def print_report(report: ClassReport, console: Console | None = None) -> None:
    """Print which site labels which class, and what there is to decide."""
    console = console or Console()
    longest = max(map(len, report.holders), default=0)
    if longest + sum(len(site) + 2 for site in report.sites) + len("  sites  ") <= console.width:
        headings = report.sites
    else:
        headings = tuple(str(number) for number, _ in enumerate(report.sites, start=1))
        numbers = zip(headings, report.sites, strict=True)
        console.print(Columns([Text(f"{number} = {site}") for number, site in numbers]))
    table = Table(box=None)
    table.add_column("class")
    for heading in headings:
        table.add_column(Text(heading), justify="center")
    table.add_column("sites", justify="right")
    for name, holders in report.holders.items():
        marks = [Text("x" if site in holders else ".") for site in report.sites]
        table.add_row(Text(name), *marks, str(len(holders)))
    console.print(table)
    console.print(
        f"Classes: {len(report.holders)}, of which {len(report.shared)} at more than one site and "
        f"{len(report.unique)} at one alone.\n"
    )
    print_undecided(report, console)
    for entry in report.kept_apart:
        line = f"Kept apart: {entry.name} and {entry.canonical}, because: {entry.provenance}."
        console.print(Text(line, "dim"))
    for merge in report.possible_merges:
        effect = "their positives" if merge.relation == "narrower" else "its negatives alone"
        line = f"Possible at {merge.site}, so that {effect} count as {merge.target}: "
        setting = _yaml({"merges": {merge.target: list(merge.sources)}})
        console.print(Text(line + setting, "dim"), soft_wrap=True)


def print_undecided(report: ClassReport, console: Console) -> None:
    """Print names that the vocabulary does not know, and those that look like others."""
    alike = {pair.name for pair in report.near_duplicates}
    for new in report.new:
        if new.name not in alike:
            console.print(Text(described(new)), soft_wrap=True)
    for pair in report.near_duplicates:
        at = ", ".join(report.holders.get(pair.other, ())) or "no site"
        console.print(
            Text.assemble(
                ("Decide: ", "bold yellow"),
                f"'{pair.name}' ({', '.join(pair.sites)}) resembles '{pair.other}' ({at}): "
                f"{pair.reason}.\n  In the site file of {', '.join(pair.sites)}, {pair.suggestion}",
            ),
            soft_wrap=True,  # so that a suggestion can be copied in one piece
        )


def described(new: NewClass) -> str:
    """Say that a name is a class of its own, and how to rename it."""
    text = f"New class: '{new.name}' ({', '.join(new.sites)}) is not in the vocabulary"
    if _NEGATED.search(new.name):
        return f"{text}, and may say that something is absent or in doubt: is it a class?"
    if not new.nearest:
        return f"{text}, and resembles no class there."
    return (
        f"{text}; nearest known: {', '.join(new.nearest)}. If it is one of them, rename it in the "
        f"site file: {_yaml({'merges': {new.nearest[0]: [new.name]}})}"
    )


def _yaml(setting: Mapping[str, object]) -> str:
    flow = yaml.safe_dump(setting, default_flow_style=True, allow_unicode=True, width=10_000)
    return flow.strip().removeprefix("{").removesuffix("}")

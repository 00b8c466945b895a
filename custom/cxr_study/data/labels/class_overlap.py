"""The classes of all sites before training: which site labels which, and which names are similar.

Sites share a class only by its name: "Effusion" at one and "Pleural Effusion" at another would
become two columns of the head, each trained by only some of the sites.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import yaml
from rich.columns import Columns
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cxr_study.data.labels.vocabulary import (
    UNION_CLASSES,
    Entry,
    is_class,
    relation,
    resemblance,
    similar_classes,
)

_NEGATED = re.compile(
    r"\?|\b(no|not|non|none|nan|without|kein\w*|nicht|ohne|sans|pas|sin)\b|[无未]", re.I
)
"""Words in a name that deny or doubt a finding; merging it into the finding inverts labels."""


@dataclass(frozen=True)
class SiteClasses:
    """The classes of a site.

    Attributes:
        site: Name of the site.
        classes: Classes that it labels, by canonical names where there are any.
        columns: All class columns of its data, after merges.
        distinct: Names that its site file declares to be different from all similar ones.
    """

    site: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    distinct: tuple[str, ...] = ()


@dataclass(frozen=True)
class NearDuplicate:
    """Two names that may mean the same class.

    Attributes:
        name: A class of the union that the catalogue does not know.
        other: A class of the union, or one of the study's 20.
        reason: Why they may be the same, for people.
        sites: Sites that label `name` and have not declared it distinct.
        suggestion: Keys that these sites can add to their site files, for people.
    """

    name: str
    other: str
    reason: str
    sites: tuple[str, ...]
    suggestion: str


def sites_by_class(sites: Iterable[SiteClasses]) -> dict[str, tuple[str, ...]]:
    """Class -> names of the sites that label it, sorted by class."""
    union = sorted({name for site in sites for name in site.classes})
    return {name: tuple(each.site for each in sites if name in each.classes) for name in union}


def unknown_names(sites: Sequence[SiteClasses]) -> list[str]:
    """Classes that the catalogue does not know; they are separate classes unless merged."""
    return [name for name in sites_by_class(sites) if not is_class(name)]


def near_duplicates(sites: Sequence[SiteClasses]) -> Iterator[NearDuplicate]:
    """Find pairs of similar names that sites should decide about before training.

    Two classes of the catalogue are never near-duplicates: the catalogue defines how they differ.
    """
    union = sites_by_class(sites)
    open_ = {
        name: tuple(each.site for each in sites if name in {*each.classes} - {*each.distinct})
        for name in unknown_names(sites)
        if not _NEGATED.search(name)
    }
    for name, at in open_.items():
        for other in sorted({*union, *UNION_CLASSES} - {name}):
            if not at or (other in open_ and (other < name or not open_[other])):
                continue
            if reason := resemblance(name, other):
                suggestion = (
                    f"if they are the same finding: {_yaml({'merges': {other: [name]}})}; "
                    f"if not: {_yaml({'distinct': [name]})}"
                )
                yield NearDuplicate(name, other, reason, at, suggestion)


def never_merged(sites: Sequence[SiteClasses]) -> list[Entry]:
    """Entries of the catalogue about pairs of the union that must never be merged."""
    related = (relation(one, other) for one, other in combinations(sites_by_class(sites), 2))
    return [entry for entry in related if entry is not None and entry.relation == "never"]


def possible_merges(sites: Sequence[SiteClasses]) -> Iterator[str]:
    """Lines about merges that the catalogue allows and a site does not use."""
    for site, target in product(sites, sorted({*sites_by_class(sites), *UNION_CLASSES})):
        if target in site.columns and target not in site.classes:
            continue  # the site excludes this class
        found = {name: relation(name, target) for name in site.columns}
        for kind, effect in (("narrower", "their positives"), ("broader", "its negatives alone")):
            sources = [name for name, entry in found.items() if entry and entry.relation == kind]
            if sources and not (kind == "broader" and target in site.columns):
                setting = _yaml({"merges": {target: sources}})
                yield f"Possible at {site.site}, so that {effect} count as {target}: {setting}"


def open_decisions(sites: Sequence[SiteClasses]) -> Iterator[str]:
    """Lines about names that are unknown or similar to others, with keys for the site files."""
    at, pairs = sites_by_class(sites), list(near_duplicates(sites))
    alike = {pair.name for pair in pairs}
    yield from (_described(name, at[name]) for name in unknown_names(sites) if name not in alike)
    for pair in pairs:
        others = ", ".join(at.get(pair.other, ())) or "no site"
        yield (
            f"Decide: '{pair.name}' ({', '.join(pair.sites)}) resembles '{pair.other}' ({others}): "
            f"{pair.reason}.\n  In the site file of {', '.join(pair.sites)}, {pair.suggestion}"
        )


def print_report(sites: Sequence[SiteClasses], console: Console) -> None:
    """Print a table of classes and sites, and what is to be decided.

    Args:
        sites: All sites of the federation.
        console: Where to print; sites are numbered if their names do not fit its width.
    """
    labelled = sites_by_class(sites)
    names = [each.site for each in sites]
    longest = max(map(len, labelled), default=0)
    if longest + sum(len(name) + 2 for name in names) + len("  sites  ") > console.width:
        numbered = dict(enumerate(names, start=1))
        console.print(Columns([Text(f"{number} = {name}") for number, name in numbered.items()]))
        names = list(map(str, numbered))
    table = Table(box=None)
    table.add_column("class")
    for name in names:
        table.add_column(Text(name), justify="center")
    table.add_column("sites", justify="right")
    for name, at in labelled.items():
        marks = [Text("x" if each.site in at else ".") for each in sites]
        table.add_row(Text(name), *marks, str(len(at)))
    console.print(table)
    shared = sum(len(at) > 1 for at in labelled.values())
    console.print(
        f"Classes: {len(labelled)}, of which {shared} at more than one site and "
        f"{len(labelled) - shared} at one alone.\n"
    )
    for line in open_decisions(sites):
        console.print(Text(line), soft_wrap=True)  # so that it can be copied in one piece
    for entry in never_merged(sites):
        line = f"Kept apart: {entry.name} and {entry.canonical}, because: {entry.provenance}."
        console.print(Text(line, "dim"))
    for line in possible_merges(sites):
        console.print(Text(line, "dim"), soft_wrap=True)


def _described(name: str, sites: Sequence[str]) -> str:
    """Line about a name that the vocabulary does not know, and how to rename it."""
    text = f"New class: '{name}' ({', '.join(sites)}) is not in the vocabulary"
    if _NEGATED.search(name):
        return f"{text}, and may mean that something is absent or in doubt: is it a class?"
    if not (nearest := similar_classes(name)):
        return f"{text}, and resembles no class there."
    return (
        f"{text}; nearest known: {', '.join(nearest)}. If it is one of them, rename it in the "
        f"site file: {_yaml({'merges': {nearest[0]: [name]}})}"
    )


def _yaml(setting: Mapping[str, object]) -> str:
    flow = yaml.safe_dump(setting, default_flow_style=True, allow_unicode=True, width=10_000)
    return flow.strip().removeprefix("{").removesuffix("}")

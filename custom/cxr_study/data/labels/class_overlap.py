"""The classes of a federation before it trains: who labels which, and which names look alike.

Sites share a class by its name alone: "Effusion" at one and "Pleural Effusion" at another would
become two columns of the head, each trained by half of the sites.
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


def holders(sites: Iterable[SiteClasses]) -> dict[str, tuple[str, ...]]:
    """Class -> the sites that label it, sorted by class."""
    union = sorted({name for site in sites for name in site.classes})
    return {name: tuple(each.site for each in sites if name in each.classes) for name in union}


def unknown(sites: Sequence[SiteClasses]) -> list[str]:
    """Names that the catalogue does not know: classes of their own, unless a site merges them."""
    return [name for name in holders(sites) if not is_class(name)]


def near_duplicates(sites: Sequence[SiteClasses]) -> Iterator[NearDuplicate]:
    """What is to be decided before training.

    Classes of the catalogue are never near-duplicates of each other: it says how they differ.
    """
    union = holders(sites)
    open_ = {
        name: tuple(each.site for each in sites if name in {*each.classes} - {*each.distinct})
        for name in unknown(sites)
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


def kept_apart(sites: Sequence[SiteClasses]) -> list[Entry]:
    """Pairs of the union that the catalogue says must never be merged."""
    related = (relation(one, other) for one, other in combinations(holders(sites), 2))
    return [entry for entry in related if entry is not None and entry.relation == "never"]


def possible_merges(sites: Sequence[SiteClasses]) -> Iterator[str]:
    """Lines about merges that the catalogue knows and a site does not make of its columns."""
    for site, target in product(sites, sorted({*holders(sites), *UNION_CLASSES})):
        if target in site.columns and target not in site.classes:
            continue  # the site leaves this class out
        found = {name: relation(name, target) for name in site.columns}
        for kind, effect in (("narrower", "their positives"), ("broader", "its negatives alone")):
            sources = [name for name, entry in found.items() if entry and entry.relation == kind]
            if sources and not (kind == "broader" and target in site.columns):
                setting = _yaml({"merges": {target: sources}})
                yield f"Possible at {site.site}, so that {effect} count as {target}: {setting}"


def undecided(sites: Sequence[SiteClasses]) -> Iterator[str]:
    """Lines about names that the vocabulary does not know, and those that look like others."""
    at, pairs = holders(sites), list(near_duplicates(sites))
    alike = {pair.name for pair in pairs}
    yield from (_described(name, at[name]) for name in unknown(sites) if name not in alike)
    for pair in pairs:
        others = ", ".join(at.get(pair.other, ())) or "no site"
        yield (
            f"Decide: '{pair.name}' ({', '.join(pair.sites)}) resembles '{pair.other}' ({others}): "
            f"{pair.reason}.\n  In the site file of {', '.join(pair.sites)}, {pair.suggestion}"
        )


def print_report(sites: Sequence[SiteClasses], console: Console) -> None:
    """Print which site labels which class, and what there is to decide."""
    labelled = holders(sites)
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
    for line in undecided(sites):
        console.print(Text(line), soft_wrap=True)  # so that it can be copied in one piece
    for entry in kept_apart(sites):
        line = f"Kept apart: {entry.name} and {entry.canonical}, because: {entry.provenance}."
        console.print(Text(line, "dim"))
    for line in possible_merges(sites):
        console.print(Text(line, "dim"), soft_wrap=True)


def _described(name: str, sites: Sequence[str]) -> str:
    """Say that a name is a class of its own, and how to rename it."""
    text = f"New class: '{name}' ({', '.join(sites)}) is not in the vocabulary"
    if _NEGATED.search(name):
        return f"{text}, and may say that something is absent or in doubt: is it a class?"
    if not (nearest := known_alike(name)):
        return f"{text}, and resembles no class there."
    return (
        f"{text}; nearest known: {', '.join(nearest)}. If it is one of them, rename it in the "
        f"site file: {_yaml({'merges': {nearest[0]: [name]}})}"
    )


def _yaml(setting: Mapping[str, object]) -> str:
    flow = yaml.safe_dump(setting, default_flow_style=True, allow_unicode=True, width=10_000)
    return flow.strip().removeprefix("{").removesuffix("}")

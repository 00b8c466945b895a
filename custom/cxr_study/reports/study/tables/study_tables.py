"""The tables of a study: those of its paper, or those of an ablation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from cxr_study.reports.study.tables.captions import classes
from cxr_study.reports.study.tables.layouts import PAPERS, Layout, averages
from cxr_study.reports.study.tables.tables import TESTS, Column, PValues, Table, build
from cxr_study.studies.analysis.means import GROUPS, by_run
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.papers.published_results import AVERAGE, Published, as_shipped, of_study

_KINDS = {
    "all": "all classes",
    "shared": "shared",
    "unique": "unique, this site",
    "elsewhere": "unique, other sites",
}
"""Group of classes -> heading of its column, where each site has a test split of its own."""


def tables(results: StudyResults, data: str, p_values: PValues | None = None) -> tuple[Table, ...]:
    """The tables of a study, as far as runs are finished.

    "nih-chexpert" and "fedfbn" have those of their papers. Any other study has one for each test
    set, with settings as columns and, where `averages` says so, the average over them; and one for
    each further group of classes that a paper gives results of.

    Args:
        results: Of the study.
        data: On which data, for the caption; such as "phantom, 2000 images of each data set".
        p_values: Of tests against surgical aggregation. Default: none.
    """
    study = results.study
    changed = {setting.name for setting in study.settings} - as_shipped(study)
    if study.name in PAPERS and not changed:
        source, layouts = PAPERS[study.name]
        published = of_study(study, source)
    else:
        published = _comparable(results, of_study(study))
        layouts = tuple(_ablation(results, published))
    means = pd.concat([results.means, *_of_sites(results, layouts)], ignore_index=True)
    built = (
        build(
            layout.name,
            layout.title,
            layout.columns,
            layout.rows(study.rows),
            means,
            data=data,
            published=published,
            p_values=p_values,
        )
        for layout in layouts
    )
    return tuple(table for table in built if table is not None)


def _finished(results: StudyResults) -> tuple[str, ...]:
    """Names of the settings with a finished run, in the study's order."""
    found = set(results.means["setting"])
    return tuple(each.name for each in results.study.settings if each.name in found)


def _comparable(results: StudyResults, published: tuple[Published, ...]) -> tuple[Published, ...]:
    """Without the averages, unless ours are over all settings, too."""
    whole = len(_finished(results)) == len(results.study.settings)
    return tuple(line for line in published if whole or line.place.setting != AVERAGE)


def _ablation(results: StudyResults, published: Sequence[Published]) -> Iterator[Layout]:
    study, settings = results.study, _finished(results)
    if study.given:
        yield from _of_test_splits(results)
        return
    for test in study.tests:
        measured = {line.place.group for line in published if line.place.test == test} | {"all"}
        for group in GROUPS:
            if group not in measured:
                continue
            columns = [Column(name, test, (name,), group, over=study.factor) for name in settings]
            if len(settings) > 1 and averages(study):
                columns.append(Column(f"average of {len(settings)}", test, settings, group))
            title = f"{study.title}: {classes(test, group)}"
            yield Layout(f"{test}-{group}", title, tuple(columns))


def _of_test_splits(results: StudyResults) -> Iterator[Layout]:
    """Of each site's test split a table: kinds of classes in every setting."""
    means = results.means
    for test in results.study.tests:
        here = means[means["test"] == test]
        columns = tuple(
            Column(_KINDS[group], test, (name,), group, over=name)
            for name in _finished(results)
            for group in _KINDS
            if group in set(here.loc[here["setting"] == name, "group"])
        )
        yield Layout(f"{test}-classes", f"{results.study.title}: {TESTS[test]}", columns)


def _of_sites(results: StudyResults, layouts: Sequence[Layout]) -> Iterator[pd.DataFrame]:
    """Means over the classes of single sites, where a table has such a group."""
    wanted = {column.group for layout in layouts for column in layout.columns} - set(GROUPS)
    held = {
        (run.setting, site): names
        for run in results.runs
        for site, names in run.what["sites"].items()
        if site in wanted
    }
    scores = results.scores
    for (setting, site), names in held.items():
        chosen = scores[(scores["setting"] == setting) & scores["class"].isin(names)]
        if not chosen.empty:
            means = by_run(chosen)
            yield means[means["group"] == "all"].assign(group=site)

"""The texts of a study's page: facts at its head, notices, answer, and findings in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

import pandas as pd

from cxr_studies.analysis.analysis import Analysis
from cxr_studies.analysis.claim_checks import Finding
from cxr_studies.analysis.intervals_and_tests import DOES_NOT_HOLD, HOLDS, NOT_DECIDED
from cxr_studies.analysis.study_results import StudyResults, reference
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import GLOBAL, SERVER, TEST_SETS, Result, read_table
from cxr_studies.report.figures.style import row_name, scenarios
from cxr_studies.report.tables.layouts import TESTS, classes
from cxr_study.common.wording import counted, join_names
from cxr_study.evaluation.subgroup_scores import FEWEST, KINDS
from cxr_study.jobs.presets import Settings
from cxr_study.reports.page.numbers import UNDEFINED, interval

PHANTOM = "Phantom data: shows the method's behaviour, not clinical performance."
"""Notice of a study on phantom data."""


def describe_data(data: StudyData) -> str:
    """The data in a few words, for captions: phantom with its size, or the real data sets."""
    if data.images is None:
        return f"real data ({data.name}: {join_names([TESTS[name] for name in data.sources])})"
    return f"phantom, {data.images:,} images of each data set"


def report_header(results: StudyResults, data: StudyData) -> dict[str, str]:
    """Facts for the head of the page and for the provenance file.

    Args:
        results: Of the study.
        data: On which it ran.

    Returns:
        Name -> text: data, test sets, network, recipe, initial body, rounds, seeds, runs, wall
        time, code, sources and machine.
    """
    runs = results.finished
    network = runs[0].what["network"]
    patience = sorted({run.what["settings"]["patience"] for run in runs})
    made = list(results.results.values())
    own = [f"at {site}, if not pooled, {_settings(each)}" for site, each in data.per_site.items()]
    recipe = [data.preset or "the jobs' own settings", _settings(data.settings), *own]
    poc = sum(bool(run.what.get("poc")) for run in runs)
    in_poc = f", {poc} of them in a POC" if poc else ""
    return {
        "Data": describe_data(data),
        "Tested on": _tested(results),
        "Network": f"{network['backbone']}, {network['image_size']} pixels",
        "Recipe": "; ".join(filter(None, recipe)),
        "Initial body": "the phantom's" if data.initial_body is None else data.initial_body.name,
        "Rounds": f"{_each(run.rounds for run in runs)}, patience "
        f"{join_names([str(rounds or 'none') for rounds in patience])}",
        "Seeds": _each(run.seed for run in runs),
        "Runs": f"{len(made)} of {len({run.key for run in results.runs})} finished{in_poc}",
        "Wall time": _wall_time(made),
        "Code": f"surgical-aggregation {_each(result.code for result in made)}",
        "Sources": _each(result.sources or "not kept" for result in made),
        "Machine": _each(result.machine or "not kept" for result in made),
    }


def _settings(values: Settings) -> str:
    """Settings with their values, by comma."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


def package_versions(results: StudyResults) -> str:
    """The packages that decide the result of a run, with their versions."""
    packages = results.finished[0].what["packages"]
    return join_names([f"{name} {version}" for name, version in packages.items()])


def answer(analysis: Analysis) -> Iterator[str]:
    """The result of the study in a sentence or two.

    Yields:
        Mean AUROCs of the global models in the last scenario, best first, if there are any; the
        number of claims by verdict, if there are any.
    """
    results = analysis.results
    last = scenarios(results)[-1]
    means = results.means[(results.means["group"] == "all") & (results.means["scenario"] == last)]
    means = means[means["model"] == GLOBAL].dropna(subset=["auroc"])
    if not means.empty:
        found = means.groupby(["method", "strategy"])["auroc"].mean().sort_values(ascending=False)
        rows = {Row(*map(str, pair)): value for pair, value in found.items()}
        ranking = "; ".join(f"{row_name(row, rows)} {value:.3f}" for row, value in rows.items())
        yield (
            f"Mean AUROC of one model for all classes, {results.study.factor}: {last}, over test "
            f"sets and seeds: {ranking}."
        )
    if analysis.judged:
        verdicts = [each.verdict for each in analysis.judged]
        words = (HOLDS, DOES_NOT_HOLD, NOT_DECIDED)
        numbers = ", ".join(f"{word}: {verdicts.count(word)}" for word in words)
        claims = counted(len(verdicts), "claim")
        seeds = counted(len({run.seed for run in results.finished}), "seed")
        yield f"{claims} of the papers, by intervals over {seeds}: {numbers}."


def notices(results: StudyResults, data: StudyData) -> Iterator[str]:
    """What to know before believing a number.

    Yields:
        One sentence each: phantom data, parts of the study that were not asked for, unfinished
        runs, missing test sets, a single seed.
    """
    if data.images is not None:
        yield PHANTOM
    if part := ", ".join(_part(results)):
        yield f"A part of the study: {part}."
    planned = {run.key for run in results.runs}
    if missing := len(planned) - len(results.results):
        yield f"{missing} of {len(planned)} runs are not finished; results are of the others."
    if lacking := [test for test in results.study.tests if test not in set(results.scores["test"])]:
        yield f"Not tested on {', '.join(lacking)}: the data file does not have it."
    if len({run.seed for run in results.finished}) == 1:
        yield (
            "One seed: there are no intervals over seeds, and only claims that models are the same "
            "can be decided."
        )


def without_subgroups(found: pd.DataFrame) -> Iterator[str]:
    """Name the kinds of subgroups that cannot be compared on a test set.

    Args:
        found: See `subgroups.over_seeds`.

    Yields:
        A sentence for each test set without information of a kind, or without a class that has
        enough images in every subgroup of a kind.
    """
    if found.empty:
        return
    for test, here in found.groupby(found["test"].map(TESTS), sort=False):
        if lacking := [kind for kind in KINDS if kind not in set(here["kind"])]:
            yield f"{test} has no information on {join_names(lacking)}."
        compared = here.groupby("kind", sort=False)["compared"].max()
        if few := list(compared.index[compared == 0]):
            yield (
                f"{test}, by {join_names(few)}: no class has {FEWEST} positives and {FEWEST} "
                "negatives in every subgroup."
            )


def describe_finding(finding: Finding, results: StudyResults) -> tuple[str, str, str]:
    """The result of a comparison in words.

    Args:
        finding: Of a claim.
        results: Of the study.

    Returns:
        Test set and classes, with the scenarios where they are not all of the study's; the rows
        that are compared (the better one only if it is not the study's reference), with the
        margin; the difference with its interval.
    """
    which, found = finding.comparison, finding.difference
    where = [classes(which.test, which.group)]
    if which.other_test:
        where[0] += f" minus {TESTS[which.other_test]}"
    if len(finding.scenarios) < len(results.study.scenarios):
        where.append(", ".join(finding.scenarios))
    rows = (*results.study.rows, *which.rows)
    against = f"against {row_name(which.worse, rows)}"
    if which.better != (reference(results.runs) or which.better):
        against = f"{row_name(which.better, rows)}, {against}"
    if which.model:
        against += (
            ", server's model" if which.model == SERVER else f", model of {TESTS[which.model]}"
        )
    if which.margin:
        against += f" (margin {which.margin:g})"
    number = UNDEFINED
    if found is not None:
        number = interval(found.mean, found.low, found.high, signed=True)
    return "; ".join(where), against, number


def _wall_time(results: Sequence[Result]) -> str:
    """Time in which any run was running, with cores, devices, and mean seconds of a run."""
    taken = ended = 0.0
    for result in sorted(results, key=lambda result: result.began):
        end = result.began + result.seconds
        taken += max(0.0, end - max(ended, result.began))
        ended = max(ended, end)
    alone = fmean(result.seconds for result in results)
    return (
        f"{taken / 60:.0f} min on {_each(result.cores for result in results)} cores; "
        f"{_each(result.device for result in results)}; {alone:.0f} s a run"
    )


def _each(values: Iterable[Any]) -> str:
    """Every distinct value once, sorted, as a list in words."""
    return join_names([str(value) for value in sorted(set(values))])


def _tested(results: StudyResults) -> str:
    """Images and patients of each test set; those of the first seed, where seeds differ."""
    keys: dict[str, str] = {}
    for result in results.results.values():
        keys |= {name: key for name, key in result.tests.items() if name not in keys}
    tested = []
    for name, key in keys.items():
        patients = read_table(key, results.folder / TEST_SETS)["patient"]
        of = counted(patients.nunique(), "patient")
        tested.append(f"{TESTS[name]}: {counted(len(patients), 'image')} of {of}")
    return "; ".join(tested)


def _part(results: StudyResults) -> Iterator[str]:
    """The parts of the study that were asked for, where these are fewer than in its file."""
    study, runs = results.study, results.runs
    planned = {run.scenario for run in runs}
    named = [scenario.name for scenario in study.scenarios if scenario.name in planned]
    for number, of, what in (
        (len(named), len(study.scenarios), f"scenarios ({', '.join(named)})"),
        (len({run.row for run in runs}), len(study.rows), "methods with their strategies"),
        (len({run.seed for run in runs}), study.seeds, "seeds"),
    ):
        if number < of:
            yield f"{number} of {of} {what}"

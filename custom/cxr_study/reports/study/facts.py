"""The head of a study's page: which data, how much of it, which network, how long, which code.

And what must be known before a number of the page is believed, and what came out of claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import pandas as pd

from cxr_study.common.wording import counted, listed
from cxr_study.evaluation import test_split
from cxr_study.reports.page.numbers import UNDEFINED, interval
from cxr_study.reports.study.figures.style import row_name
from cxr_study.reports.study.tables.layouts import TESTS, classes
from cxr_study.studies.analysis.claim_checks import Finding
from cxr_study.studies.analysis.study_results import StudyResults, reference
from cxr_study.studies.analysis.subgroups import FEWEST, KINDS
from cxr_study.studies.plan.data_file import StudyData
from cxr_study.studies.plan.run_folder import TEST_SETS, Result

PHANTOM = "Phantom data: shows the method's behaviour, not clinical performance."


def described(data: StudyData) -> str:
    """On which data, in a few words."""
    if data.images is None:
        return f"real data ({data.name}: {listed([TESTS[name] for name in data.sources])})"
    return f"phantom, {data.images:,} images of each data set"


def facts(results: StudyResults, data: StudyData) -> Sequence[tuple[str, str]]:
    """Name -> value, for the head of the page.

    Args:
        results: Of the study.
        data: On which data.
    """
    runs = results.finished
    what = runs[0].what
    seeds = sorted({run.seed for run in runs})
    rounds = sorted({run.rounds for run in runs})
    patience = sorted({run.what["settings"]["patience"] for run in runs})
    network = what["network"]
    made = list(results.results.values())
    return (
        ("Data", described(data)),
        ("Tested on", _tested(results)),
        ("Network", f"{network['backbone']}, {network['image_size']} pixels"),
        ("Recipe", _recipe(data)),
        ("Initial body", "embedded" if data.initial_body is None else data.initial_body.name),
        ("Rounds", f"{listed(list(map(str, rounds)))}, patience {_patience(patience)}"),
        ("Seeds", listed(list(map(str, seeds)))),
        ("Runs", _runs(results)),
        ("Wall time", _wall_time(made)),
        ("Code", f"surgical-aggregation {_distinct(made, 'code')}"),
    )


def made_with(results: StudyResults) -> str:
    """The packages that decide what a run gives, with their versions."""
    packages = results.finished[0].what["packages"]
    return listed([f"{name} {version}" for name, version in packages.items()])


def notices(results: StudyResults, data: StudyData) -> Iterator[str]:
    """Say it, one sentence or two at a time.

    Args:
        results: Of the study.
        data: On which data.
    """
    if data.images is not None:
        yield PHANTOM
    if part := ", ".join(_part(results)):
        yield f"A part of the study: {part}."
    planned = {run.key for run in results.runs}
    if missing := len(planned) - len(results.results):
        yield f"{missing} of {len(planned)} runs are not finished; figures are of the others."
    if lacking := [test for test in results.study.tests if test not in set(results.scores["test"])]:
        yield f"Not tested on {', '.join(lacking)}: the data file does not have it."
    if len({run.seed for run in results.finished}) == 1:
        yield (
            "One seed: there are no intervals over seeds, and no claim can be decided but that "
            "models are the same."
        )


def without_subgroups(found: pd.DataFrame) -> Iterator[str]:
    """Say which test sets have no subgroups of a kind, or none that can be compared.

    Args:
        found: As `subgroups.over_seeds` gives it.
    """
    if found.empty:
        return
    for test, here in found.groupby(found["test"].map(TESTS), sort=False):
        lacking = [kind for kind in KINDS if kind not in set(here["kind"])]
        if lacking:
            yield f"{test} does not tell {listed(lacking)}."
        compared = here.groupby("kind", sort=False)["compared"].max()
        if few := list(compared.index[compared == 0]):
            yield (
                f"{test}, by {listed(few)}: no class has {FEWEST} positives and {FEWEST} "
                "negatives in every subgroup."
            )


@dataclass(frozen=True)
class Told:
    """A finding in words.

    Attributes:
        where: On which images and classes, and in which scenarios where it is not all of the study.
        against: The row that is claimed to be worse, and how far the better one may be behind it;
            the better one, too, unless it is the study's reference.
        number: What is claimed to be above 0, or above minus the margin, with its interval.
        verdict: See `claims.Finding`.
    """

    where: str
    against: str
    number: str
    verdict: str


def told(finding: Finding, results: StudyResults) -> Told:
    """Say what came out of a comparison.

    Args:
        finding: Of it.
        results: Of the study.
    """
    which, found = finding.comparison, finding.difference
    where = [classes(which.test, which.group)]
    if len(finding.scenarios) < len(results.study.scenarios):
        where.append(", ".join(finding.scenarios))
    beside = results.study.rows if results.study.given else which.rows
    against = f"against {row_name(which.worse, beside)}"
    surgical = reference(results.runs)
    if surgical is not None and which.better != surgical:
        against = f"{row_name(which.better, (*beside, surgical))}, {against}"
    if which.model:
        against += f", model of {TESTS.get(which.model, which.model)}"
    if which.margin:
        against += f" ({which.margin:g} behind is enough)"
    number = UNDEFINED
    if found is not None:
        number = interval(found.mean, found.low, found.high, signed=True)
    return Told("; ".join(where), against, number, finding.verdict)


def _wall_time(results: Sequence[Result]) -> str:
    """How long runs took side by side; the time in which none was made does not count."""
    taken = ended = 0.0
    for result in sorted(results, key=lambda result: result.began):
        end = result.began + result.seconds
        taken += max(0.0, end - max(ended, result.began))
        ended = max(ended, end)
    alone = fmean(result.seconds for result in results)
    return (
        f"{taken / 60:.0f} min on {_distinct(results, 'cores')} cores; "
        f"{_distinct(results, 'device')}; {alone:.0f} s a run"
    )


def _patience(found: Sequence[int]) -> str:
    return listed([str(rounds) if rounds else "none" for rounds in found])


def _distinct(results: Sequence[Result], name: str) -> str:
    """What the results have there, each once."""
    return listed([str(value) for value in sorted({getattr(result, name) for result in results})])


def _recipe(data: StudyData) -> str:
    """The preset, and the settings that win over it."""
    settings = ", ".join(f"{name} {value}" for name, value in data.settings.items())
    return "; ".join(filter(None, [data.preset or "the jobs' own settings", settings]))


def _runs(results: StudyResults) -> str:
    planned = {run.key for run in results.runs}
    poc = sum(bool(run.what.get("poc")) for run in results.finished)
    told = f"{len(results.results)} of {len(planned)} finished"
    return f"{told}, {poc} of them in a POC" if poc else told


def _tested(results: StudyResults) -> str:
    """Images and patients of each test set; those of the first seed, where seeds differ."""
    found: dict[str, str] = {}
    for result in results.results.values():
        for name, key in result.tests.items():
            if name not in found:
                table = test_split.read(key, results.folder / TEST_SETS)
                images = counted(len(table), "image")
                patients = counted(table["patient"].nunique(), "patient")
                found[name] = f"{TESTS[name]}: {images} of {patients}"
    return "; ".join(found.values())


def _part(results: StudyResults) -> Iterator[str]:
    """What was to be run of the study's file, where that is less."""
    study = results.study
    scenarios = {run.scenario for run in results.runs}
    named = [scenario.name for scenario in study.scenarios if scenario.name in scenarios]
    rows = {run.row for run in results.runs}
    seeds = {run.seed for run in results.runs}
    for those, all_, what in (
        (len(named), len(study.scenarios), f"scenarios ({', '.join(named)})"),
        (len(rows), len(study.rows), "methods with their strategies"),
        (len(seeds), study.seeds, "seeds"),
    ):
        if those < all_:
            yield f"{those} of {all_} {what}"

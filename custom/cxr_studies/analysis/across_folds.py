"""Means over folds, with intervals by patient, of sites whose patients are cut into folds.

Each patient is tested in one fold. An AUROC is computed in each fold and averaged over folds,
because models of different folds rank no patients together. Where several seeds test the same
fold, they are averaged first. Resamples are drawn fold by fold, the same for all rows, so
differences are paired; a difference is over the seeds that both rows have finished.

The data frame has a line for each pair of rows, or for a row by itself, and group of classes:

    scenario, method, strategy            of the row
    other_method, other_strategy          of the row that is subtracted; "" where none is
    group                                 of `GROUPS`; "own, <site>", of one site; or
                                          "<site>: <class>", one class: of a difference, only where
                                          it has enough patients. Each class at each site counts
                                          once
    classes                               number of (class, site) that the means are over
    patients                              of the (class, site) with the fewest of them, the smaller
                                          number of patients with positive, and with negative images
    auroc, auroc_low, auroc_high          mean, or difference, with its 95 % interval; none where
                                          no AUROC differs between resamples, as one of 1.0

Classes with few patients are in no mean: see `FEWEST` and `FEW`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations, product

import numpy as np
import pandas as pd

from cxr_studies.analysis.patient_intervals import resample_runs
from cxr_studies.analysis.study_results import StudyResults, compared_model, interval_columns
from cxr_studies.plan.row import Row
from cxr_study.evaluation.bootstrap import percentile_interval

FEWEST = 30
"""Least number of patients with a positive image, and with a negative one, that a class needs at a
site, over all folds, to be in a mean."""

FEW = 4
"""Least number to be listed by itself, and in the group "elsewhere, few"."""

GROUPS = {
    "own": (("shared", "unique"), FEWEST),
    "shared": (("shared",), FEWEST),
    "unique": (("unique",), FEWEST),
    "elsewhere": (("elsewhere",), FEWEST),
    "elsewhere, few": (("elsewhere",), FEW),
}
"""Group -> kinds of classes in it, and how many patients each needs: labelled by several or all
sites (shared), by the tested site alone (unique), or by other sites only (elsewhere)."""

_KEYS = [
    *("scenario", "method", "strategy", "other_method", "other_strategy"),
    *("group", "classes", "patients"),
]
_Place = tuple[str, str]  # site, class
_Areas = dict[_Place, dict[tuple[int, int], np.ndarray]]
"""(Site, class) -> (fold, seed) -> AUROC itself, then on resamples."""

_Patients = dict[_Place, dict[int, int]]  # fold -> the smaller number of patients


def across_folds(
    results: StudyResults,
    folds: int,
    *,
    resamples: int = 1000,
    processes: int = 1,
) -> pd.DataFrame:
    """Mean AUROCs over folds and their paired differences, with 95 % intervals by patient.

    The point estimate and each resample are averaged in the same way: over the folds and seeds in
    which a (class, site) is defined, then over the classes and sites of a group. The interval is
    the percentile interval of the resampled means.

    Args:
        results: Of a study whose data file has the key `folds`.
        folds: Number of folds; a run tests the fold that is its seed modulo this number.
        resamples: Bootstrap resamples of the patients of each test set.
        processes: Number of processes that share the work.

    Returns:
        One line for each scenario, row or ordered pair of rows, and group; see the module's
        docstring for the columns. Values that are not defined are NaN.
    """
    found = resample_runs("resampling folds", results, resamples, processes)
    lines = []
    for scenario in dict.fromkeys(run.scenario for run in results.finished):
        areas: dict[Row, _Areas] = {}
        patients: _Patients = {}
        for run in results.finished:
            if run.scenario != scenario:
                continue
            fold, of_row = run.seed % folds, areas.setdefault(run.row, {})
            for (model, test), each in found[run.key].items():
                if model != compared_model(results.results[run.key].classes, test):
                    continue
                drawn = np.vstack([each.values["auroc"], each.drawn["auroc"]]).T
                for name, few, area in zip(each.classes, each.fewest, drawn, strict=True):
                    of_row.setdefault((test, name), {})[fold, run.seed] = area
                    patients.setdefault((test, name), {})[fold] = int(few)
        for row, other in [*((row, None) for row in areas), *permutations(areas, 2)]:
            groups = _groups(patients, _kinds(results, scenario), alone=FEWEST if other else FEW)
            lines += _lines(scenario, row, other, areas, groups, patients)
    return pd.DataFrame(lines, columns=[*_KEYS, *interval_columns("auroc")])


def _groups(
    patients: _Patients, kinds: Mapping[_Place, str], alone: int
) -> dict[str, list[_Place]]:
    """The classes at sites of each group; one with so many patients is also a group alone."""
    number = {place: sum(by_fold.values()) for place, by_fold in sorted(patients.items())}
    groups = {
        group: [place for place in number if number[place] >= least and kinds[place] in of]
        for group, (of, least) in GROUPS.items()
    }
    for place in groups["own"]:
        groups.setdefault(f"own, {place[0]}", []).append(place)
    single = (place for place in number if number[place] >= alone)
    return groups | {f"{site}: {name}": [(site, name)] for site, name in single}


def _kinds(results: StudyResults, scenario: str) -> dict[_Place, str]:
    """(Site, class) -> "shared", "unique" or "elsewhere", as `GROUPS` uses them."""
    scores = results.scores[results.scores["scenario"] == scenario]
    scores = scores.drop_duplicates(["test", "class"])
    labelled = np.where(scores["sites"] > 1, "shared", "unique")
    kind = np.where(scores["labelled"], labelled, "elsewhere")
    return dict(zip(zip(scores["test"], scores["class"], strict=True), kind.tolist(), strict=True))


def _lines(
    scenario: str,
    row: Row,
    other: Row | None,
    areas: Mapping[Row, _Areas],
    groups: Mapping[str, list[_Place]],
    patients: _Patients,
) -> list[dict[str, object]]:
    """Lines of a row, or of a pair of rows: one for each group of which both have a class."""
    less = areas[other] if other else None
    each = {place: _by_fold(areas[row], less, place) for place in patients}
    lines: list[dict[str, object]] = []
    for group, of in groups.items():
        places = [place for place in of if each[place]]
        if not places:
            continue
        mean = _mean([_mean(list(each[place].values())) for place in places])
        fewest = min(sum(patients[place][fold] for fold in each[place]) for place in places)
        keys = (
            *(scenario, row.method, row.strategy),
            *((other.method, other.strategy) if other else ("", "")),
            *(group, len(places), fewest),
        )
        varies = _vary([areas[one] for one in (row, other) if one], places)
        low_high = percentile_interval(mean[1:] if varies else [])
        ends = interval_columns("auroc", float(mean[0]), *low_high)
        lines.append({**dict(zip(_KEYS, keys, strict=True)), **ends})
    return lines


def _vary(rows: Iterable[_Areas], places: Iterable[_Place]) -> bool:
    """Whether any AUROC differs between resamples; else they say nothing about its precision."""
    drawn = [area[1:] for row, at in product(rows, places) for area in row.get(at, {}).values()]
    return any(np.nanmin(a, initial=np.inf) < np.nanmax(a, initial=-np.inf) for a in drawn)


def _by_fold(ours: _Areas, theirs: _Areas | None, place: _Place) -> dict[int, np.ndarray]:
    """AUROC, or the difference, of each fold, averaged over the seeds that both rows have."""
    one = ours.get(place, {})
    other = dict.fromkeys(one, 0.0) if theirs is None else theirs.get(place, {})
    by_fold: dict[int, list[np.ndarray]] = {}
    for fold, seed in sorted(one.keys() & other.keys()):
        by_fold.setdefault(fold, []).append(one[fold, seed] - other[fold, seed])
    return {fold: _mean(of_seeds) for fold, of_seeds in by_fold.items()}


def _mean(arrays: list[np.ndarray]) -> np.ndarray:
    """Mean of what is defined."""
    return np.ma.masked_invalid(arrays).mean(axis=0).filled(np.nan)

"""Which part of a study is wanted, and the trainings that it consists of."""

from __future__ import annotations

from dataclasses import dataclass

from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Scenario, Study
from cxr_study.common.spelling import nearest
from cxr_study.common.wording import counted


class StudyError(ValueError):
    """A study cannot be made as asked."""


@dataclass(frozen=True)
class Selection:
    """Which part of a study is wanted: names, how many seeds; None: as the study file says."""

    scenarios: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    seeds: int | None = None
    quick: bool = False

    def __str__(self) -> str:
        told = ["the quick form"] if self.quick else []
        if self.scenarios is not None:
            told.append(f"scenarios {', '.join(self.scenarios)}")
        if self.methods is not None:
            told.append(f"methods {', '.join(self.methods)}")
        if self.seeds is not None:
            told.append(counted(self.seeds, "seed"))
        return "; ".join(told) or "all of it"


def trainings(study: Study, selection: Selection) -> list[tuple[int, Scenario, Row]]:
    """Seed, scenario and row of each training that is wanted, seed by seed.

    Raises:
        StudyError: What is selected is unknown, or nothing is left of the study.
    """
    known = {scenario.name: scenario for scenario in study.scenarios}
    wanted = _selected(study, "scenario", selection.scenarios, tuple(known))
    scenarios = [known[name] for name in wanted if name in study.quick or not selection.quick]
    every = tuple(row.method for row in study.rows)
    methods = _selected(study, "method", selection.methods, every)
    found = [
        (seed, scenario, row)
        for seed in range(selection.seeds or study.seeds)
        for scenario in scenarios
        for row in study.rows_of(scenario)
        if row.method in methods
    ]
    if not found:
        raise StudyError(
            f"no run of study {study.name} is all that is asked for ({selection}). Ask for less at "
            "a time."
        )
    return found


def _selected(
    study: Study, kind: str, wanted: tuple[str, ...] | None, known: tuple[str, ...]
) -> list[str]:
    for name in wanted or ():
        if name not in known:
            raise StudyError(f"study {study.name} has no {kind} {name!r}; {nearest(name, known)}.")
    return [name for name in dict.fromkeys(known) if wanted is None or name in wanted]

"""Small studies whose figures can be worked out in the head."""

import sys

import numpy as np
import pytest

import study_runs
from cxr_studies.analysis.study_results import gather
from cxr_studies.plan.study_file import Scenario, Study
from cxr_studies.report.figures.style import METHODS

NEGATIVES = 10
LABELS = [1.0, 1.0] + [0.0] * NEGATIVES
CUT = {"nih-1": ["Edema", "Mass"], "nih-2": ["Edema", "Hernia"]}


def reaching(auroc):
    """Probabilities for `LABELS` with an AUROC, a multiple of 0.05 from 0.5 to 1."""
    below = round((auroc - 0.5) * 2 * NEGATIVES)
    return [1.0, below / NEGATIVES, *((np.arange(NEGATIVES) + 0.5) / NEGATIVES)]


class MadeUp:
    """A study whose runs are made up one by one; its results are gathered in the end."""

    def __init__(self, folder):
        self.folder, self.runs = folder, []

    def plan(self, method="surgical", strategy="fedbn+", seed=0, scenario="2", sites=CUT):
        """A run that is not finished."""
        run = study_runs.run(method, strategy, seed, scenario, sites)
        self.runs.append(run)
        return run

    def finish(self, aurocs, *, tests=None, sites=CUT, result=None, **run):
        """A finished run; aurocs: (model, test set) -> class -> AUROC, or probabilities.

        Tests (name -> label table) have `LABELS` for all classes by default; `result` is special.
        """
        planned = self.plan(sites=sites, **run)
        labels = dict.fromkeys(sorted(set().union(*sites.values())), LABELS)
        predicted = {
            key: {c: reaching(value) if np.isscalar(value) else value for c, value in each.items()}
            for key, each in aurocs.items()
        }
        tests = tests or {test: study_runs.table(labels) for _, test in aurocs}
        study_runs.finish(planned, self.folder, tests, predicted, **(result or {}))
        return planned

    def reach(self, auroc, *tests, classes=("Edema", "Mass", "Hernia"), **run):
        """A finished run whose global model reaches the same for all classes, on NIH by default."""
        reached = dict.fromkeys(classes, auroc)
        return self.finish({("global", test): reached for test in tests or ("nih",)}, **run)

    def results(self, factor="sites"):
        """Of all runs; scenarios are in the order of their names, rows in that of the runs."""
        scenarios = sorted({run.scenario for run in self.runs})
        study = Study.model_construct(
            name="small",
            title="Small",
            source="",
            factor=factor,
            scenarios=tuple(Scenario(name=name, cut="nih", sites=2) for name in scenarios),
            quick=(),
            methods=study_runs.methods(run.row for run in self.runs),
            seeds=1,
            tests=("nih", "chexpert", "mimic"),
        )  # fmt: skip
        return gather(study, self.runs, self.folder)


@pytest.fixture
def made_up(tmp_path):
    """See `MadeUp`."""
    return MadeUp(tmp_path)


@pytest.fixture
def drawn(monkeypatch):
    """Calls a function that draws, and gives the figure that would become an SVG."""

    def drawn(draw, *args):
        with monkeypatch.context() as patched:
            patched.setattr(sys.modules[draw.__module__], "svg", lambda figure, *_: figure)
            return draw(*args)

    return drawn


@pytest.fixture
def lines():
    """Finds what a panel has of a method, with or without markers: a list of x and y each."""

    def lines(axes, method, *, markers):
        colour, marker = METHODS[method]
        return [
            np.asarray(line.get_xydata(), float).T
            for line in axes.get_lines()
            if line.get_color() == colour and (line.get_marker() == marker) == markers
        ]

    return lines

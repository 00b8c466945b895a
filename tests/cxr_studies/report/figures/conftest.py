"""Small studies whose figures can be worked out in the head."""

import sys

import numpy as np
import pytest

from cxr_studies.report.figures.style import METHODS
from study_runs import MadeUp

CUT = {"nih-1": ["Edema", "Mass"], "nih-2": ["Edema", "Hernia"]}


@pytest.fixture
def made_up(tmp_path):
    """A study of NIH cut in two, to be made up run by run."""
    return MadeUp(tmp_path, CUT)


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

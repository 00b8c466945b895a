import io

import numpy as np
import pandas as pd
from rich.console import Console

from cxr_studies.analysis.analysis import show_folds
from cxr_studies.report.figures.folds import fold_differences

KEYS = ["method", "other_method", "other_strategy", "auroc", "auroc_low", "auroc_high"]
FOLDS = pd.DataFrame([
    ("surgical", np.nan, np.nan, 0.7, 0.65, 0.75), ("vanilla", np.nan, np.nan, 0.6, 0.55, 0.65),
    ("vanilla", "surgical", "fedbn+", -0.1, -0.15, -0.05),
    ("surgical", "vanilla", "fedbn+", 0.1, 0.05, 0.15),
], columns=KEYS).assign(scenario="2", group="own", classes=3, strategy="fedbn+")  # fmt: skip


def test_every_row_is_drawn_less_surgical_aggregation_with_its_interval(made_up, drawn):
    made_up.reach(0.7, scenario="2")
    assert fold_differences(made_up.results(), FOLDS, "2", "f") is None  # nothing to compare
    made_up.reach(0.6, scenario="2", method="vanilla")
    few = FOLDS.assign(group="nih: Edema")  # no group has a class with enough patients
    assert fold_differences(made_up.results(), few, "2", "f") is None
    both = pd.concat([FOLDS.assign(group=group) for group in ("own", "shared", "unique")])
    axes, _, below = drawn(fold_differences, made_up.results(), both, "2", "f").axes
    (name,), (name_below,) = (each.get_yticklabels() for each in (axes, below))
    assert (name.get_size(), name.get_color()) == (name_below.get_size(), name_below.get_color())
    lines = [line.get_xdata() for line in axes.get_lines()]
    assert [-0.1] in [list(x) for x in lines] and [-0.15, -0.05] in [list(x) for x in lines]
    assert "all of its own classes" in (axes.get_title(loc="left"), axes.get_title())
    assert "2, over folds: AUROC" in fold_differences(made_up.results(), both, "2", "f")


def test_the_console_has_a_line_for_each_row_with_its_interval():
    text = io.StringIO()
    show_folds("Real", FOLDS, Console(file=text, width=80))
    output = text.getvalue()
    for part in ("Real: mean AUROC over folds", "surgical, fedbn+", "0.700", "0.650-0.750", "own"):
        assert part in output
    assert "-0.100" not in output


def test_the_console_has_the_lines_of_every_scenario():
    text = io.StringIO()
    later = FOLDS.assign(scenario="last", auroc=FOLDS["auroc"] + 0.2)
    both = pd.concat([FOLDS.assign(scenario="best"), later])
    show_folds("Real", both, Console(file=text, width=80))
    shown = [line.split()[-1] for line in text.getvalue().splitlines() if line.strip()]
    wanted = ["best", "0.700", "0.600", "last", "0.900", "0.800"]
    assert [each for each in shown if each in wanted] == wanted

"""What a run of a study leaves in its folder, which is named by the run's key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cxr_study.common.files import replace

RUNS, TEST_SETS, DATA, SITES = FOLDERS = "runs", "test_sets", "data", "sites"
"""In the folder of studies, beside the studies' reports: folders of runs; tables of test sets, see
`kept_tables`; site files of whole data sets, see `data_sets`; and those of the scenarios."""

SPEC_FILE = "run.json"
LOG_FILE = "log.txt"
WORK = "work"
"""FLARE's workspaces and the like; removed when the run is finished."""
RESULT_FILE = "result.json"
PREDICTIONS_FILE = "predictions.npz"
FEATURES_FILE = "features.npz"
MODELS = "models"

GLOBAL = "global"
"""What the model is called that all sites have in common."""


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        began: When the process that finished it began, seconds since 1970 (UTC); `seconds` is its
            wall time.
        device: What it was computed on: "CPU", or the name of the GPU.
        code: Version of the package, with the commit where it runs from a git checkout.
        best_round: Of the model that is tested; the largest, where every site has its own.
        losses: Mean validation BCE over sites of the model that each round started from, and of the
            final one; None where it is not defined.
        aurocs: Mean validation AUROC over sites of the same models; empty in runs made when it was
            not kept.
        images: Training images of all sites together in one round; 0 in such runs.
        column_similarity: For each round, class -> how alike the columns were that sites sent; see
            `column_similarity`. Empty without a federation.
        classes: Model ("global", or the site whose own it is) -> its classes.
    """

    began: float
    seconds: float
    cores: int
    device: str
    code: str
    rounds: int
    best_round: int
    losses: tuple[float | None, ...]
    column_similarity: tuple[Mapping[str, float], ...]
    tests: Mapping[str, str]
    classes: Mapping[str, Sequence[str]]
    digests: Mapping[str, str]
    aurocs: tuple[float | None, ...] = ()
    images: int = 0


def write_result(result: Result, folder: Path) -> None:
    """Write a result in one step: from then on the run is finished."""
    text = json.dumps(asdict(result), indent=1, allow_nan=False, ensure_ascii=False)
    replace(folder / RESULT_FILE, text + "\n")


def read_result(folder: Path) -> Result | None:
    """The result in a run's folder; None where the run is not finished."""
    path = folder / RESULT_FILE
    if not path.is_file():
        return None
    values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for name in {"losses", "aurocs", "column_similarity"} & values.keys():
        values[name] = tuple(values[name])
    return Result(**values)

"""One run of a study: what it is, and what it leaves in its folder, which is named by its key."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cxr_studies.plan.row import Row
from cxr_study.common.files import replace
from cxr_study.data.labels.label_table import DESCRIPTORS

RUNS, TEST_SETS, DATA, SITES = FOLDERS = "runs", "test_sets", "data", "sites"
"""In the folder of studies, beside the studies' reports: folders of runs; tables of test sets, see
`keep_table`; site files of whole data sets, and those of the scenarios, see `site_files`."""

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

SERVER = "server"
"""What the server's model is called where every site has its own batch norm: body and columns are
averaged, batch norm is the initial body's. Nobody would use it; it is tested beside the sites'."""

FEATURES_OF = 500
"""Images of a test set at most whose features are kept, spread evenly over it."""


def key_of(what: Mapping[str, Any]) -> str:
    """SHA-256 of JSON-serialisable values, shortened to 16 digits."""
    text = json.dumps(what, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Run:
    """One training with its tests.

    Attributes:
        seed: Of splits, cut, initial heads, order and augmentation.
        what: Everything that matters for what comes out, JSON-serialisable.
        where: Where its files are: site_files, sites, tests, test_sets, initial_body, of a run in a
            POC FLARE's project file; and whether the sites have splits of their own (given).
    """

    scenario: str
    row: Row
    seed: int
    what: Mapping[str, Any]
    where: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        """Digest of `what`: runs with the same key are one and need to be made once only."""
        return key_of(self.what)

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.scenario}, {self.row.name}, seed {self.seed}"

    @property
    def facts(self) -> dict[str, Any]:
        """What tells it from others of its study, as columns of data frames."""
        return {"scenario": self.scenario, **asdict(self.row), "seed": self.seed}

    @property
    def rounds(self) -> int:
        """How many it makes at most."""
        return int(self.what["settings"]["num_rounds"])

    @property
    def processes(self) -> int:
        """How many train at the same time: one for each site of a federation."""
        return len(self.where["sites"]) if self.row.federated else 1


def write_spec(run: Run, folder: Path) -> None:
    """Write what the process of a run needs to know into the run's folder."""
    spec = {"name": run.name, "what": run.what, "where": run.where}
    text = json.dumps(spec, indent=1, ensure_ascii=False)
    (folder / SPEC_FILE).write_text(f"{text}\n", encoding="utf-8")


def read_spec(folder: Path) -> Run:
    """What `write_spec` wrote; without the names of scenario and variant, which decide nothing."""
    spec = json.loads((folder / SPEC_FILE).read_text(encoding="utf-8"))
    what = spec["what"]
    return Run("", Row(**what["row"]), what["given"]["seed"], what, spec["where"])


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What came out of a training, but for the models.

    Attributes:
        losses: Mean validation BCE over sites of the model that each round started from, and of the
            final one; None where it is not defined.
        aurocs: Mean validation AUROC over sites of the same models; empty in runs made when it was
            not kept.
        images: Training images of all sites together in one round; 0 in such runs.
        column_similarity: For each round, class -> how alike the columns were that sites sent; see
            `column_similarity`. Empty without a federation.
    """

    rounds: int
    losses: tuple[float | None, ...]
    aurocs: tuple[float | None, ...] = ()
    images: int = 0
    column_similarity: tuple[Mapping[str, float], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Result(Trained):
    """A finished run.

    Attributes:
        began: When the process that finished it began, seconds since 1970 (UTC); `seconds` is its
            wall time.
        device: What it was computed on: "CPU", or the name of the GPU.
        code: Version of the package, with the commit where it runs from a git checkout.
        sources: Digest of the source files; "" in runs made when it was not kept. See `provenance`.
        machine: Its processor; likewise.
        best_round: Of the model that is tested; the largest, where every site has its own.
        tests: Test set -> key of its table; see `keep_table`.
        classes: Model ("global", "server", or the site whose own it is) -> its classes.
    """

    began: float
    seconds: float
    cores: int
    device: str
    code: str
    best_round: int
    tests: Mapping[str, str]
    classes: Mapping[str, Sequence[str]]
    digests: Mapping[str, str]
    sources: str = ""
    machine: str = ""


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


def keep_table(table: pd.DataFrame, folder: Path) -> str:
    """Write the table of a test set into a folder, in one step, unless it is there.

    Returns:
        Its key: the SHA-256 of its content, shortened.
    """
    text = table.to_csv(index=False, lineterminator="\n").encode("utf-8")
    key = hashlib.sha256(text).hexdigest()[:16]
    path = folder / f"{key}.csv.gz"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        handle, half = tempfile.mkstemp(dir=folder, prefix=f".{key}")
        with os.fdopen(handle, "wb") as file:
            file.write(gzip.compress(text, mtime=0))
        Path(half).replace(path)
    return key


@lru_cache(maxsize=16)
def read_table(key: str, folder: Path) -> pd.DataFrame:
    """Read a table that `keep_table` wrote, bit for bit; descriptors but the age are texts.

    It is not to be changed in place: the next one who reads it gets the same.
    """
    table = pd.read_csv(
        folder / f"{key}.csv.gz",
        dtype=dict.fromkeys(DESCRIPTORS, str),
        keep_default_na=False,
        na_values=[""],
    )
    age = table["age"].astype(float)  # exact; read_csv's own numbers are not in every version
    return table.fillna(dict.fromkeys(DESCRIPTORS, "")).assign(age=age)


def featured_rows(images: int) -> np.ndarray:
    """Which of so many images have their features kept; int64, ascending."""
    return np.linspace(0, images - 1, min(images, FEATURES_OF), dtype=np.int64)


def write_arrays(arrays: Mapping[tuple[str, str], np.ndarray], file: Path) -> None:
    """Write what models have on test sets, compressed: (model, test set) -> array."""
    named: dict[str, Any] = {"/".join(pair): array for pair, array in arrays.items()}
    np.savez_compressed(file, **named)


def read_array(file: Path, model: str, test: str) -> np.ndarray:
    """What `write_arrays` wrote of a model on a test set."""
    with np.load(file) as arrays:
        return np.asarray(arrays[f"{model}/{test}"])


class Predicted(NamedTuple):
    """A model on a test set: label table, and probabilities of the model's classes, float32."""

    model: str
    test: str
    table: pd.DataFrame
    scores: pd.DataFrame


def predictions(folder: Path, key: str, result: Result) -> Iterator[Predicted]:
    """Every model of a finished run on every test set, from the folder of studies."""
    for test, table_key in result.tests.items():
        table = read_table(table_key, folder / TEST_SETS)
        for model, classes in result.classes.items():
            predicted = read_array(folder / RUNS / key / PREDICTIONS_FILE, model, test)
            yield Predicted(model, test, table, pd.DataFrame(predicted, columns=list(classes)))

"""One run of a study: its description, and the files in its folder, which is named by its key.

The folder of studies has these folders of runs, and what the runs share:

    runs/<key>/run.json          the description, see `Run`
    runs/<key>/log.txt           standard error of the run's process
    runs/<key>/predictions.npz   probabilities, an array for each model and test set
    runs/<key>/features.npz      features of some images, likewise
    runs/<key>/models/*.npz      checkpoints of the tested models
    runs/<key>/result.json       written last: the run is finished, see `Result`
    test_sets/<key>.csv.gz       label tables of test sets, see `keep_table`
    data/, sites/                site files of data sets and of scenarios, see `site_files`
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from cxr_studies.plan.row import Row
from cxr_study.common.files import atomic_path, atomic_write
from cxr_study.data.labels.label_table import DESCRIPTORS

RUNS, TEST_SETS, DATA, SITES = FOLDERS = "runs", "test_sets", "data", "sites"
"""Folders of runs, of tables of test sets, and of site files (of whole data sets, of scenarios),
next to the reports of the studies. The names of studies must differ from these."""

SPEC_FILE = "run.json"
LOG_FILE = "log.txt"
WORK = "work"
"""FLARE's workspaces and the like; removed when the run is finished."""
RESULT_FILE = "result.json"
PREDICTIONS_FILE = "predictions.npz"
FEATURES_FILE = "features.npz"
MODELS = "models"

GLOBAL = "global"
"""Name of the model that all sites have in common."""

SERVER = "server"
"""Name of the server's model where every site keeps variables of the body, such as batch norm: body
and columns are averaged, the kept variables are the initial body's. No hospital would use it; it is
tested all the same."""

FEATURES_OF = 500
"""Largest number of images of a test set whose features are kept, spread evenly over it."""


def key_of(what: Mapping[str, Any]) -> str:
    """Key of a description.

    Args:
        what: JSON-serialisable values; their order does not matter.

    Returns:
        SHA-256 of the canonical JSON, shortened to 16 hexadecimal digits.
    """
    text = json.dumps(what, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Run:
    """One training with its tests.

    Attributes:
        scenario: Name of the scenario.
        row: Method and strategy.
        seed: Of splits, cut, initial heads, order and augmentation.
        what: Everything that decides the result, JSON-serialisable.
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
        """Digest of `what`: runs with the same key are the same run and made once."""
        return key_of(self.what)

    @property
    def name(self) -> str:
        """Name for messages: scenario, row and seed."""
        return f"{self.scenario}, {self.row.name}, seed {self.seed}"

    @property
    def facts(self) -> dict[str, Any]:
        """Scenario, method, strategy and seed, which identify it in its study's data frames."""
        return {"scenario": self.scenario, **asdict(self.row), "seed": self.seed}

    @property
    def rounds(self) -> int:
        """Largest number of rounds."""
        return int(self.what["settings"]["num_rounds"])

    @property
    def processes(self) -> int:
        """Number of processes that train at the same time: one for each site of a federation."""
        return len(self.where["sites"]) if self.row.federated else 1


def write_spec(run: Run, folder: Path) -> None:
    """Write the description of a run into its folder, for the run's process.

    Args:
        run: The run.
        folder: Of the run; must exist.
    """
    spec = {"name": run.name, "what": run.what, "where": run.where}
    text = json.dumps(spec, indent=1, ensure_ascii=False)
    (folder / SPEC_FILE).write_text(f"{text}\n", encoding="utf-8")


def read_spec(folder: Path) -> Run:
    """Read what `write_spec` wrote.

    Args:
        folder: Of the run.

    Returns:
        The run, without the names of scenario and variant, which do not change the result.
    """
    spec = json.loads((folder / SPEC_FILE).read_text(encoding="utf-8"))
    what = spec["what"]
    return Run("", Row(**what["row"]), what["given"]["seed"], what, spec["where"])


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The result of a training without its models.

    Attributes:
        rounds: Number of rounds that were made.
        losses: Mean validation BCE over sites of the model that each round started from, and of the
            final one; None where it is not defined.
        aurocs: Mean validation AUROC over sites of the same models; empty in runs made when it was
            not kept.
        images: Training images of all sites together in one round; 0 in such runs.
        column_similarity: For each round, class -> mean cosine similarity of the columns that sites
            sent; see `column_similarity`. Empty without a federation.
    """

    rounds: int
    losses: tuple[float | None, ...]
    aurocs: tuple[float | None, ...] = ()
    images: int = 0
    column_similarity: tuple[Mapping[str, float], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Result(Trained):
    """The result of a finished run.

    Attributes:
        began: When the process that finished it began, seconds since 1970 (UTC).
        seconds: Wall time of that process.
        cores: Number of cores that it could use.
        device: What it was computed on: "CPU", or the name of the GPU.
        code: Version of the package, with the commit where it runs from a git checkout.
        best_round: Of the model that is tested; the largest, where every site has its own.
        tests: Test set -> key of its table; see `keep_table`.
        classes: Model ("global", "server", or the site that it belongs to) -> its classes.
        digests: Model -> digest of its variables.
        sources: Digest of the source files; "" in runs made when it was not kept. See `provenance`.
        machine: Its processor; likewise.
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
    """Write a result atomically: from then on the run is finished.

    Args:
        result: Without NaN.
        folder: Of the run.
    """
    text = json.dumps(asdict(result), indent=1, allow_nan=False, ensure_ascii=False)
    atomic_write(folder / RESULT_FILE, text + "\n")


def read_result(folder: Path) -> Result | None:
    """The result in a run's folder; None where the run is not finished."""
    path = folder / RESULT_FILE
    if not path.is_file():
        return None
    return TypeAdapter(Result).validate_json(path.read_bytes())


def keep_table(table: pd.DataFrame, folder: Path) -> str:
    """Write the table of a test set into a folder, atomically, unless it is there.

    Args:
        table: Label table of the test images, in order.
        folder: Of the tables of all test sets.

    Returns:
        Its key: the SHA-256 of its content, shortened to 16 hexadecimal digits.
    """
    text = table.to_csv(index=False, lineterminator="\n").encode("utf-8")
    key = hashlib.sha256(text).hexdigest()[:16]
    path = folder / f"{key}.csv.gz"
    if not path.is_file():
        with atomic_path(path) as unfinished:
            unfinished.write_bytes(gzip.compress(text, mtime=0))
    return key


@lru_cache(maxsize=16)
def read_table(key: str, folder: Path) -> pd.DataFrame:
    """Read a table that `keep_table` wrote, bit for bit.

    Tables are cached and must not be changed in place.

    Args:
        key: Of the table.
        folder: Of the tables.

    Returns:
        The label table; descriptors are texts, "" where unknown, except the age: float, NaN.
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
    """Rows of the images whose features are kept.

    Args:
        images: Number of images of a test set.

    Returns:
        At most `FEATURES_OF` rows, spread evenly from the first to the last; int64, ascending.
    """
    return np.linspace(0, images - 1, min(images, FEATURES_OF), dtype=np.int64)


def write_arrays(arrays: Mapping[tuple[str, str], np.ndarray], file: Path) -> None:
    """Write arrays of models on test sets to one compressed file.

    Args:
        arrays: (model, test set) -> array.
        file: An npz; its entries are named <model>/<test set>.
    """
    named: dict[str, Any] = {"/".join(pair): array for pair, array in arrays.items()}
    np.savez_compressed(file, **named)


def read_array(file: Path, model: str, test: str) -> np.ndarray:
    """Read one of the arrays that `write_arrays` wrote.

    Raises:
        KeyError: The file has none of this model on this test set.
    """
    with np.load(file) as arrays:
        return np.asarray(arrays[f"{model}/{test}"])


class Predicted(NamedTuple):
    """Predictions of a model on a test set.

    Attributes:
        model: Name of the model.
        test: Name of the test set.
        table: Label table of its images.
        scores: Probabilities, float32, a row for each image and a column for each of the model's
            classes.
    """

    model: str
    test: str
    table: pd.DataFrame
    scores: pd.DataFrame


def predictions(folder: Path, key: str, result: Result) -> Iterator[Predicted]:
    """Predictions of every model of a finished run on every test set.

    Args:
        folder: Of the studies.
        key: Of the run.
        result: Of the run.
    """
    for test, table_key in result.tests.items():
        table = read_table(table_key, folder / TEST_SETS)
        for model, classes in result.classes.items():
            predicted = read_array(folder / RUNS / key / PREDICTIONS_FILE, model, test)
            yield Predicted(model, test, table, pd.DataFrame(predicted, columns=list(classes)))

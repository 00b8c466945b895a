"""What is kept of a training, as one JSON file: its scores, and which models they are of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cxr_study.common.files import replace
from cxr_study.comparison.grid import Cell, ComparisonError
from cxr_study.comparison.measures import Score, mean_auroc


@dataclass(frozen=True)
class Ended:
    """A training at one of its endings.

    Attributes:
        round: Whose model it is; the model of round r is the one that round r starts from.
        rounds: How many rounds were made until then.
        digests: Site -> digest of the model measured there.
        scores: Every site with every class of the union.
    """

    round: int
    rounds: int
    digests: Mapping[str, str]
    scores: tuple[Score, ...]


@dataclass(frozen=True)
class Outcome:
    """A finished training.

    Attributes:
        cell: What was trained.
        endings: Key of `grid.ENDINGS` -> where it stood.
        seconds: Wall time.
    """

    cell: Cell
    endings: Mapping[str, Ended]
    seconds: float

    def auroc(self, ending: str, measure: str) -> float | None:
        """One of the figures; see `measures.mean_auroc`."""
        return mean_auroc(self.endings[ending].scores, measure)


def write(outcome: Outcome, path: Path) -> None:
    """Write an outcome, in one step."""
    values = {
        "cell": outcome.cell.to_json(),
        "endings": {name: asdict(ended) for name, ended in outcome.endings.items()},
        "seconds": outcome.seconds,
    }
    replace(path, json.dumps(values, indent=1, allow_nan=False) + "\n")


def read(path: Path, cell: Cell) -> Outcome | None:
    """Read the outcome of a cell; None where there is none yet.

    Raises:
        ComparisonError: The file is of another comparison.
    """
    if not path.is_file():
        return None
    values = json.loads(path.read_text(encoding="utf-8"))
    if values["cell"] != json.loads(json.dumps(cell.to_json())):
        raise ComparisonError(
            f"{path} was made with other settings or data. Give another --out, or remove it to "
            "train it anew."
        )
    endings = {
        name: Ended(**{**ended, "scores": tuple(Score(**score) for score in ended["scores"])})
        for name, ended in values["endings"].items()
    }
    return Outcome(cell, endings, values["seconds"])

"""What a site keeps on its own disk between rounds and jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, read, save
from surgical_aggregation.checkpoints.manifest import Manifest
from surgical_aggregation.wire.untrusted_text import checked_job

STATE_FILE = "site_state.npz"
PREVIOUS_FILE = "site_state_before.npz"
LAST_FILE = "site_last.npz"
BEST_FILE = "site_best.npz"

_KEPT = "kept/"


@dataclass(frozen=True)
class SiteState:
    """A site at the end of a round.

    Attributes:
        training: See `LocalTraining.state`.
        round: Number of rounds made.
        classes: The site's, in order.
        kept: Round -> personal variables that the site had with that round's body.
        facts: For the manifests of the site's own models, JSON-serialisable; see `SiteMemory`.
    """

    training: Mapping[str, Array]
    round: int
    classes: tuple[str, ...]
    kept: Mapping[int, Mapping[str, Array]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def site_folder(fl_ctx: FLContext, job: str) -> Path:
    """Folder of a site's files of a job (raises `ValueError`); it outlives the job's."""
    root = Path(fl_ctx.get_engine().get_workspace().get_root_dir())
    return root / "checkpoints" / checked_job(job)


def save_state(state: SiteState, folder: Path) -> None:
    """Write a site's state, and keep the one before.

    A run that is killed in the middle of a round continues from the server's last whole round, when
    a fast site may already have finished the next one.
    """
    kept = {
        f"{_KEPT}{round_}/{path}": value
        for round_, variables in state.kept.items()
        for path, value in variables.items()
    }
    facts = {"round": state.round, "classes": list(state.classes), "facts": state.facts}
    if (folder / STATE_FILE).is_file():
        (folder / STATE_FILE).replace(folder / PREVIOUS_FILE)
    save(Checkpoint({**state.training, **kept}, Manifest(facts)), folder / STATE_FILE)


def has_state(folder: Path) -> bool:
    """Whether a site has a state in a folder."""
    return any((folder / name).is_file() for name in (STATE_FILE, PREVIOUS_FILE))


def load_state(
    folder: Path, round_: int | None = None
) -> tuple[SiteState | None, Mapping[str, Exception]]:
    """Read a site's newest readable state that is not ahead of a round (None: any).

    Returns:
        The state, if there is one; and the newer files that are damaged, with the reason.
    """
    damaged: dict[str, Exception] = {}
    for name in (STATE_FILE, PREVIOUS_FILE):
        if (folder / name).is_file():
            try:
                state = _read(folder / name)
            except CheckpointError as error:
                damaged[name] = error
                continue
            if round_ is None or state.round <= round_:
                return state, damaged
    return None, damaged


def set_aside(folder: Path, names: Iterable[str]) -> None:
    """Rename damaged states, lest `save_state` replaces a whole one with them."""
    for name in names:
        (folder / name).replace((folder / name).with_suffix(".damaged"))


def _read(path: Path) -> SiteState:
    checkpoint = read(path)
    kept: dict[int, dict[str, Array]] = {}
    training = {}
    try:
        for name, value in checkpoint.variables.items():
            if name.startswith(_KEPT):
                round_, variable = name.removeprefix(_KEPT).split("/", 1)
                kept.setdefault(int(round_), {})[variable] = value
            else:
                training[name] = value
        manifest = checkpoint.manifest
        made, classes = int(manifest["round"]), tuple(manifest["classes"])
        return SiteState(training, made, classes, kept, manifest.get("facts", {}))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is no site's state: {error!r}.") from error

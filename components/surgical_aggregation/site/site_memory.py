"""A site's memory: its state on disk, and personal variables of the best and newest round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.aggregation.metrics import of_classes
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, read, save
from surgical_aggregation.checkpoints.manifest import Manifest, before_round, made_now, with_round
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.local_notes import note
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.untrusted_text import checked_job

if TYPE_CHECKING:
    from surgical_aggregation.site.training.trainer import LocalTraining

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


class SiteMemory:
    """Keeps what a site must not forget between rounds, processes and jobs.

    A site's personal variables of a round are those that it had when it received that round's body.
    Only the best model's and the newest are kept: the server says with each task which model is
    best. In rounds that a site misses, they stay the same.

    So that the manifests of its own models can say it, a site also keeps the digest of the initial
    body, the rounds in which it trained, and the AUROCs of its own models.

    Args:
        training: The site's training.

    Attributes:
        initial_body: Digest of the body that a fresh run starts from; None: not known.
    """

    def __init__(self, training: LocalTraining):
        self.training = training
        self._kept: dict[int, dict[str, Array]] = {}
        self._unchanged_since = 0  # the first round after the last one begun; 0: not known
        self._asked = False
        self.initial_body: str | None = None
        self._trained: dict[str, Any] = {}  # one for all classes; see `manifest.with_round`
        self._auroc: dict[int, dict[str, float]] = {}  # round of an own model -> class -> AUROC

    def restore(self, round_: int | None, continues: dict | None, fl_ctx: FLContext) -> str | None:
        """Restore, on the first task, the newest state of this job or of those before it.

        A job that failed in its first round may have left no state, or one that is ahead of the
        server's model. A damaged state is passed over for the one before it.

        Args:
            round_: Of a training task; None for an evaluation.
            continues: The server's header, see `headers.CONTINUES`; None: a fresh run.
            fl_ctx: Context of the task.

        Returns:
            What to log, if anything.
        """
        if self._asked:
            return None
        jobs = dict.fromkeys([fl_ctx.get_job_id(), *(continues or {}).get("jobs", ())])
        folders = {job: site_folder(fl_ctx, job) for job in jobs}
        passed_over, said = "", None
        if continues is not None:
            said = "no state of the earlier run for this round: the optimizer starts afresh"
        for job, folder in folders.items():
            state, damaged = load_state(folder, round_)
            for name, error in damaged.items():
                passed_over += f"{name} of job {job} is damaged ({type(error).__name__}); "
                note(fl_ctx, f"{name} is damaged and passed over: {error}")
                # lest `save_state` replaces a whole one with it
                (folder / name).replace((folder / name).with_suffix(".damaged"))
            if state is not None:
                said = self._restore(state, job, whole=not passed_over)
                break
        self._asked = True
        if passed_over and said is None:
            said = "the optimizer and personal variables start afresh"
        return f"{passed_over}{said}" if said else None

    def _restore(self, state: SiteState, job: str, *, whole: bool) -> str:
        """Go on from a state; what to log."""
        afresh = "optimizer and personal variables start afresh"
        if state.classes != self.training.classes:
            return f"this site's classes are not those of job {job} any more: its {afresh}"
        try:
            self.training.restore(state.training)
        except SiteError as error:
            return f"the {afresh}: {error}"
        self._kept = {r: dict(variables) for r, variables in state.kept.items()}
        self._unchanged_since = state.round if whole else 0
        self.initial_body = state.facts.get("initial_body_sha256")
        self._trained = dict(state.facts.get("trained", {}))
        self._auroc = {int(r): of for r, of in state.facts.get("auroc", {}).items()}
        return f"goes on with this site's state after {state.round} rounds of job {job}"

    def begin_round(self, round_: int, best: int | None) -> None:
        """Before training: keep the personal variables that go with this round's body."""
        personal = self.training.personal_variables()
        if personal is not None:
            of_best = None if best is None else self._of(best)
            self._kept = {} if best is None or of_best is None else {best: dict(of_best)}
            self._kept[round_] = personal
            self._unchanged_since = round_ + 1

    def measured(self, round_: int, values: Mapping[str, float]) -> None:
        """Keep the AUROCs of the site's own model of a round, on its validation split."""
        kept = {r: of for r, of in self._auroc.items() if r in self._kept}
        if self.training.has_personal:
            self._auroc = {**kept, round_: of_classes("auroc", values)}

    def end_round(self, round_: int, fl_ctx: FLContext) -> None:
        """After training: write the state."""
        self._trained = with_round(self._trained, round_, [fl_ctx.get_identity_name()])
        facts = {
            "initial_body_sha256": self.initial_body,
            "trained": self._trained,
            "auroc": self._auroc,
        }
        training = self.training
        state = SiteState(training.state(), round_ + 1, training.classes, self._kept, facts)
        save_state(state, site_folder(fl_ctx, fl_ctx.get_job_id()))

    def of_round(self, round_: int) -> Mapping[str, Array]:
        """Personal variables of a round's model, to measure it with; none where there are none.

        A site that was away in that round, and has not trained since, still has them. One that
        joined later, or whose state is lost, would measure another model.

        Raises:
            SiteError: The site does not have those of that round.
        """
        if self.training.personal_variables() is None:
            return {}
        personal = self._of(round_)
        if personal is None:
            raise SiteError(
                f"the model of round {round_} is another one at every site, and this site has not "
                "kept what it had of its own in that round: it joined later, or its state was "
                "lost. So it does not measure that model."
            )
        return personal

    def _of(self, round_: int) -> Mapping[str, Array] | None:
        if round_ in self._kept:
            return self._kept[round_]
        return self.training.personal if 0 < self._unchanged_since <= round_ else None

    def keep_model(
        self, file: str, round_: int, fl_ctx: FLContext, features: Mapping[str, Any] | None = None
    ) -> None:
        """Write the model of a round to a file, where the site has personal variables.

        `features` are the statistics of its test images; see `feature_statistics`.
        """
        if not self.training.has_personal:
            return
        site, training = fl_ctx.get_identity_name(), self.training
        variables = training.labelled_variables()
        _, columns = wire.split(variables)
        kernel, _ = next(iter(columns.values()))
        trained = before_round(self._trained, round_) if self._trained else {}
        lacking = {name: {"lacking": {site: what}} for name, what in training.lacking.items()}
        classes = {name: {**trained, **lacking.get(name, {})} for name in training.classes}
        facts = {
            **training.site.network_facts,
            **training.model.kinds.facts(),
            **made_now(),
            "head_features": len(kernel),
            "site": site,
            "round": round_,
            "initial_body_sha256": self.initial_body,
            "classes": classes if trained else {},
        }
        if auroc := self._auroc.get(round_):
            facts["validation"] = {"round": round_, "auroc": {site: auroc}}
        if features:
            facts["features"] = {site: features}
        manifest = Manifest(facts).with_strategy(training.options.strategy)
        folder = site_folder(fl_ctx, fl_ctx.get_job_id())
        save(Checkpoint(variables, manifest), folder / file)

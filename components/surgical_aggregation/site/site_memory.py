"""Persistent state of a site: on disk, with personal variables of the best and latest round."""

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
    """The state of a site at the end of a round.

    Attributes:
        training: See `LocalTraining.state`.
        round: Number of rounds made.
        classes: The site's classes, in order.
        kept: Round -> the site's personal variables that belong to that round's body.
        facts: Provenance for the manifests of the site's models, JSON-serialisable.
    """

    training: Mapping[str, Array]
    round: int
    classes: tuple[str, ...]
    kept: Mapping[int, Mapping[str, Array]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def site_folder(fl_ctx: FLContext, job: str) -> Path:
    """Folder of a site's files of a job, which outlives the job; raises `ValueError`."""
    root = Path(fl_ctx.get_engine().get_workspace().get_root_dir())
    return root / "checkpoints" / checked_job(job)


def save_state(state: SiteState, folder: Path) -> None:
    """Write a site's state, and keep the previous one.

    A killed run resumes from the server's last complete round, when a fast site may already have
    finished the next one.
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
    """Whether a folder has a site's state."""
    return any((folder / name).is_file() for name in (STATE_FILE, PREVIOUS_FILE))


def load_state(
    folder: Path, round_: int | None = None
) -> tuple[SiteState | None, Mapping[str, Exception]]:
    """Read a site's newest readable state.

    Args:
        folder: Folder of the site's files of a job.
        round_: Largest number of rounds made; None: any.

    Returns:
        The state or None, and the names of newer damaged files with the reason.
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
        raise CheckpointError(f"{path} is not a site's state: {error!r}.") from error


class SiteMemory:
    """Persistent state of a site across rounds, processes and jobs.

    It has the site's personal variables for the best and the latest global model, and provenance
    for the manifests of the site's models: digest of the initial body, rounds trained, validation
    AUROCs. The personal variables of a round are those that the site had when it received that
    round's body; the server sends the best model's round with each task. A missed round leaves the
    state unchanged.

    Args:
        training: The site's training.

    Attributes:
        initial_body: Digest of the body that a fresh run starts from; None: unknown.
    """

    def __init__(self, training: LocalTraining):
        self.training = training
        self._kept: dict[int, dict[str, Array]] = {}
        self._unchanged_since = 0  # first round after the last one begun; 0: unknown
        self._restored = False
        self.initial_body: str | None = None
        self._trained: dict[str, Any] = {}  # one for all classes; see `manifest.with_round`
        self._auroc: dict[int, dict[str, float]] = {}  # round of an own model -> class -> AUROC

    def restore(
        self, round_: int | None, continues: dict[str, Any] | None, fl_ctx: FLContext
    ) -> str | None:
        """Restore, on the first task, the newest state of this job or of earlier ones.

        A job that failed in its first round may have left no state, or one that is ahead of the
        server's model. A damaged state is skipped for the previous one.

        Args:
            round_: Round of a training task; None for an evaluation.
            continues: The server's header, see `headers.CONTINUES`; None: a fresh run.
            fl_ctx: Context of the task.

        Returns:
            Text for the log; None: nothing to log.
        """
        if self._restored:
            return None
        jobs = dict.fromkeys([fl_ctx.get_job_id(), *(continues or {}).get("jobs", ())])
        folders = {job: site_folder(fl_ctx, job) for job in jobs}
        skipped, text = "", None
        if continues is not None:
            text = "no state of the earlier run for this round: the optimizer starts afresh"
        for job, folder in folders.items():
            state, damaged = load_state(folder, round_)
            for name, error in damaged.items():
                skipped += f"{name} of job {job} is damaged ({type(error).__name__}); "
                note(fl_ctx, f"{name} is damaged and skipped: {error}")
                # so that `save_state` does not replace the readable one by it
                (folder / name).replace((folder / name).with_suffix(".damaged"))
            if state is not None:
                text = self._restore(state, job, newest=not skipped)
                break
        self._restored = True
        if skipped and text is None:
            text = "the optimizer and personal variables start afresh"
        return f"{skipped}{text}" if text else None

    def _restore(self, state: SiteState, job: str, *, newest: bool) -> str:
        """Restore a state, the newest one or an older one; returns a text for the log."""
        afresh = "optimizer and personal variables start afresh"
        if state.classes != self.training.classes:
            return f"this site's classes differ from those of job {job}: its {afresh}"
        try:
            self.training.restore(state.training)
        except SiteError as error:
            return f"the {afresh}: {error}"
        self._kept = {r: dict(variables) for r, variables in state.kept.items()}
        self._unchanged_since = state.round if newest else 0
        self.initial_body = state.facts.get("initial_body_sha256")
        self._trained = dict(state.facts.get("trained", {}))
        self._auroc = {int(r): values for r, values in state.facts.get("auroc", {}).items()}
        return f"restored this site's state after {state.round} rounds of job {job}"

    def begin_round(self, round_: int, best: int | None) -> None:
        """Before training: keep the personal variables that belong to this round's body."""
        personal = self.training.personal_variables()
        if personal is not None:
            of_best = None if best is None else self._kept_for(best)
            self._kept = {} if best is None or of_best is None else {best: dict(of_best)}
            self._kept[round_] = personal
            self._unchanged_since = round_ + 1

    def measured(self, round_: int, values: Mapping[str, float]) -> None:
        """Keep the validation AUROCs of the site's personal model of a round."""
        kept = {r: aurocs for r, aurocs in self._auroc.items() if r in self._kept}
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
        """Personal variables for evaluating a round's model; empty if the site has none.

        A site that missed that round, and has not trained since, still has them. A site that joined
        later, or whose state is lost, does not.

        Raises:
            SiteError: The site does not have the variables of that round.
        """
        if self.training.personal_variables() is None:
            return {}
        personal = self._kept_for(round_)
        if personal is None:
            raise SiteError(
                f"the model of round {round_} needs this site's personal variables of that round, "
                "which it does not have: it joined later, or its state was lost. So it cannot "
                "evaluate that model."
            )
        return personal

    def _kept_for(self, round_: int) -> Mapping[str, Array] | None:
        if round_ in self._kept:
            return self._kept[round_]
        return self.training.personal if 0 < self._unchanged_since <= round_ else None

    def keep_model(
        self, file: str, round_: int, fl_ctx: FLContext, features: Mapping[str, Any] | None = None
    ) -> None:
        """Write the model of a round to a file, if the site has personal variables.

        Args:
            file: Name of the file, `LAST_FILE` or `BEST_FILE`.
            round_: Round of the model.
            fl_ctx: Context of the task.
            features: Statistics of the site's test images, see `feature_statistics`; None: none.
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

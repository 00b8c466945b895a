"""A site's memory: its state on disk after every round, and personal variables of good rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.averaging import Array
from surgical_aggregation.checkpoint import CheckpointError
from surgical_aggregation.site import SiteError
from surgical_aggregation.site_state import (
    BEST_FILE,
    LAST_FILE,
    SiteState,
    load_state,
    save_site_model,
    save_state,
    site_folder,
)
from surgical_aggregation.strategy import HEAD_LAYER

if TYPE_CHECKING:
    from surgical_aggregation.local_training import LocalTraining


class SiteMemory:
    """Keeps what a site must not forget between rounds, processes and jobs.

    A site's personal variables of a round are those that it had when it received that round's body.
    Only the best model's and the newest are kept: which model is best, the server says with each
    task.

    Args:
        training: The site's training.
    """

    def __init__(self, training: LocalTraining):
        self.training = training
        self._kept: dict[int, dict[str, Array]] = {}
        self._asked = False

    def take_up(self, round_: int | None, continues: dict | None, fl_ctx: FLContext) -> str | None:
        """Take up, on the first task only, the newest state of this job or of those before it.

        Not every earlier job has one: a job that failed in its first round left a state that is
        ahead of the server's model, or none.

        Args:
            round_: Of a training task; None for an evaluation.
            continues: The server's header, see `global_model.CONTINUES`; None: a fresh run.
            fl_ctx: Context of the task.

        Returns:
            What to log; None when there is nothing to say.
        """
        if self._asked:
            return None
        self._asked = True
        for job in dict.fromkeys([fl_ctx.get_job_id(), *(continues or {}).get("jobs", ())]):
            try:
                state = load_state(site_folder(fl_ctx, job), round_)
                if state is None:
                    continue
                if state.classes != self.training.classes:
                    return (
                        f"this site's classes are not those of job {job} any more: its optimizer "
                        "and personal variables start afresh"
                    )
                self.training.restore(state.training)
            except (CheckpointError, SiteError) as error:
                return f"the optimizer and personal variables start afresh: {error}"
            self._kept = {r: dict(variables) for r, variables in state.kept.items()}
            return f"goes on with this site's state after {state.round} rounds of job {job}"
        if continues is not None:
            return "no state of the earlier run for this round: the optimizer starts afresh"
        return None

    def begin_round(self, round_: int, best: int | None, fl_ctx: FLContext) -> None:
        """Before training: keep the personal variables that go with this round's body."""
        personal = self.training.personal_variables()
        if personal is not None:
            self._kept = {r: kept for r, kept in self._kept.items() if r == best}
            self._kept[round_] = personal
            self.keep_model("last", round_, fl_ctx)

    def end_round(self, round_: int, fl_ctx: FLContext) -> None:
        """After training: write the state."""
        state = SiteState(self.training.state(), round_ + 1, self.training.classes, self._kept)
        save_state(state, site_folder(fl_ctx, fl_ctx.get_job_id()))

    def of_round(self, round_: int | None) -> dict[str, Array] | None:
        """Personal variables of a round's model; None where they are the present ones."""
        return None if round_ is None else self._kept.get(round_)

    def keep_model(self, which: str, round_: int, fl_ctx: FLContext) -> None:
        """Write the model as it stands, where the site has personal variables.

        Args:
            which: "last" or "best".
            round_: The model's round.
            fl_ctx: Context of the task.
        """
        if self.training.personal_variables() is None:
            return
        variables = self.training.variables()
        body = {p: v for p, v in variables.items() if not p.startswith(f"{HEAD_LAYER}/")}
        kinds = self.training.model.kinds.facts()
        facts = {"site": fl_ctx.get_identity_name(), "round": round_, **kinds}
        path = site_folder(fl_ctx, fl_ctx.get_job_id()) / (
            BEST_FILE if which == "best" else LAST_FILE
        )
        save_site_model(body, self.training.head(), facts, path)

"""Log a summary of a run when it has ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.aggregation.metrics import IMAGES
from surgical_aggregation.server.access.job_sites import site_of
from surgical_aggregation.server.models.model_files import checkpoint_folders, job_folder
from surgical_aggregation.server.records.run_record import RECORD_FILE
from surgical_aggregation.wire import headers, results


class RunSummary(FLComponent):
    """Log at the end of a run its best model, the test results of every site, and the path.

    Runs on the server, and reads the run's record (see `RunRecord`). A run without training logs
    only the test results.

    Args:
        workflow: Id of the workflow that tests the model. Default "test_best".
    """

    def __init__(self, workflow: str = "test_best"):
        super().__init__()
        self.workflow = workflow
        self._tests: dict[str, str] = {}

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Collect test results, and log at END_RUN."""
        if event_type == EventType.END_RUN:
            self.log_info(fl_ctx, "\n".join(["the run has ended", *self._lines(fl_ctx)]))
        elif fl_ctx.get_prop(FLContextKey.WORKFLOW) != self.workflow:
            return
        elif event_type in (headers.CONTRIBUTION_REFUSED, headers.SITE_SILENT):
            refusal = fl_ctx.get_prop(headers.REFUSAL)
            self._tests.setdefault(refusal["site"], f"not measured: {refusal['reason']}")
        elif event_type == AppEventType.VALIDATION_RESULT_RECEIVED:
            self._tests[site_of(fl_ctx)] = _measured(results.current(fl_ctx).metrics)

    def _lines(self, fl_ctx: FLContext) -> list[str]:
        tests = [f"  test split of {site}: {text}" for site, text in sorted(self._tests.items())]
        file = job_folder(fl_ctx) / RECORD_FILE
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        newest: dict[str, dict[str, Any]] = {}
        counts = {"refused": 0, "dropped": 0}
        for line in map(json.loads, filter(None, text.split("\n"))):
            if line["event"] == "best_dropped":
                newest.pop("best", None)
            newest[line["event"]] = line
            if (kind := line["event"].removesuffix("_too")) in counts:
                counts[kind] += line.get("count", 1)
        if "round" not in newest and not newest.get("failed", {}).get("began"):
            return tests
        lines = []
        if stop := newest.get("stopped"):
            after = f"after round {stop['round']}: patience {stop['patience']}"
            lines.append(f"  stopped early, {after}")
        if best := newest.get("best"):
            made = f" ({best[headers.CANDIDATE]})" if headers.CANDIDATE in best else ""
            lines.append(
                f"  best model: round {best['round']}{made}, mean validation "
                f"{best['metric']} {best['value']:.4f} over {len(best['sites'])} sites"
            )
        else:
            lines.append(
                "  there is no best model; see the lines above for the reason of each round"
            )
        lines += tests
        for kind, what in (("refused", "results"), ("dropped", "rounds")):
            if counts[kind]:
                lines.append(f"  {what} {kind}: {counts[kind]}; see {RECORD_FILE}")
        return [*lines, f"  models: {checkpoint_folders(fl_ctx)[1]}"]


def _measured(metrics: Mapping[str, float]) -> str:
    """A site's mean AUROC, and the number of its classes for which it is defined."""
    defined, measured = (
        sum(name.startswith(f"{metric}/") for name in metrics) for metric in ("auroc", "bce")
    )
    auroc = f"{metrics['auroc']:.3f}" if "auroc" in metrics else "not defined"
    images = f", {metrics[IMAGES]:.0f} images" if IMAGES in metrics else ""
    return f"mean AUROC {auroc} over {defined} of its {measured} classes{images}"

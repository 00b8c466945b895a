"""Reads what a finished job left in FLARE's workspace: rounds, refusals, best model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from cxr_study.report.summary import Refusal, Round, SiteRound
from cxr_study.simulation import checkpoint_folder, read_record, server_folder
from surgical_aggregation.site_state import BEST_FILE


class ResultsError(ValueError):
    """A workspace does not hold a finished run."""


def rounds(workspace: Path) -> tuple[Round, ...]:
    """The global model that started each round, measured at the sites; the final model last.

    Where a site had to warm columns up first, it measured a model of its own: no value is given.

    From FLARE's own artifacts: metrics/round_metrics.jsonl and cross_site_val.
    """
    server = server_folder(workspace)
    path = server / "metrics" / "round_metrics.jsonl"
    if not path.is_file():
        raise ResultsError(f"{path} does not exist; has the run in {workspace} finished?")
    measured = []
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        sites = {
            site["name"]: {metric["name"]: metric["value"] for metric in site["metrics"]}
            for site in entry["sites"]
        }
        measured.append((entry["round"], sites))
    final = _evaluations(server, "SRV_last")
    if final:
        measured.append((measured[-1][0] + 1, final))
    return tuple(_round(number, sites) for number, sites in measured)


def _evaluations(server: Path, model: str) -> dict[str, dict[str, float]]:
    path = server / "cross_site_val" / "cross_val_results.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {site: models[model] for site, models in results.items() if models.get(model)}


def _round(number: int, sites: dict[str, dict[str, float]]) -> Round:
    sites = {name: _of_global_model(metrics) for name, metrics in sites.items()}
    losses = [metrics["bce"] for metrics in sites.values() if "bce" in metrics]
    return Round(
        round=number,
        mean_validation_bce=sum(losses) / len(losses) if losses else None,
        sites={
            name: SiteRound(
                validation_bce=metrics.get("bce"),
                validation_auroc=metrics.get("auroc"),
                train_seconds=metrics.get("train_seconds"),
                validate_seconds=metrics.get("validate_seconds"),
            )
            for name, metrics in sorted(sites.items())
        },
    )


def _of_global_model(metrics: dict[str, float]) -> dict[str, float]:
    if not metrics.get("warmed_up"):
        return metrics
    return {name: value for name, value in metrics.items() if name.endswith("_seconds")}


def refusals(workspace: Path) -> tuple[Refusal, ...]:
    """Results that the server refused."""
    return tuple(
        Refusal(round=event["round"], site=event["site"], reason=event["reason"])
        for event in read_record(workspace)
        if event["event"] == "refused"
    )


def rounds_run(workspace: Path) -> int:
    """How many rounds the job has made."""
    return sum(event["event"] == "round" for event in read_record(workspace))


def stopped_early(workspace: Path) -> bool:
    """Whether the job ended because no better model came."""
    return any(event["event"] == "stopped" for event in read_record(workspace))


def wall_seconds(workspace: Path) -> float:
    """Seconds from the start to the end of the job."""
    return sum(event["seconds"] for event in read_record(workspace) if event["event"] == "ended")


def personal_checkpoints(workspace: Path, sites: Sequence[str]) -> dict[str, Path]:
    """Site -> file of its own best model, where a strategy leaves it one."""
    paths = {site: checkpoint_folder(workspace, site) / BEST_FILE for site in sites}
    return {site: path for site, path in paths.items() if path.is_file()}


def best_checkpoint(workspace: Path) -> Path:
    """File of the best global model.

    Raises:
        ResultsError: There is none.
    """
    path = server_folder(workspace) / "models" / "best.npz"
    if not path.is_file():
        raise ResultsError(f"{path} does not exist; has the run in {workspace} finished?")
    return path

"""What finished jobs left in the server's folders: rounds, refusals, best model.

A run is one job, or several that continued each other: `servers` are the server's folders of the
jobs, oldest first, in the simulator's workspace or in a download.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from cxr_study.common.wording import listed
from cxr_study.evaluation.summary_json import Contribution, RefusedResult, Round, SiteRound
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.checkpoints.manifest import contributed, rounds_in, spans
from surgical_aggregation.server.models.model_files import LAST_FILE
from surgical_aggregation.server.records.run_record import RECORD_FILE
from surgical_aggregation.site.site_memory import BEST_FILE

METRICS = "metrics/round_metrics.jsonl"
"""In the server's folder: FLARE's own record of the rounds, a line each."""


class ResultsError(ValueError):
    """A folder does not hold a finished run."""


def read_events(server: Path) -> list[dict]:
    """Whole events of a job (see `run_record`), by the server's folder; none before it starts.

    A newer version may write other kinds; readers look for those that they know.
    """
    return json_lines(server / RECORD_FILE)


@dataclass(frozen=True)
class Progress:
    """Rounds that a job has made, the record of its best model so far, whether it stopped early."""

    rounds: int = 0
    best: Mapping[str, Any] | None = None
    stopped: bool = False


def progress(events: Sequence[Mapping[str, Any]]) -> Progress | None:
    """How far a job is, by its events; None: there is none yet, or it is put away already."""
    named = [event["event"] for event in events]
    best = [event for event in events if event["event"] in ("best", "best_dropped")][-1:]
    dropped = not best or best[0]["event"] == "best_dropped"
    made = Progress(named.count("round"), None if dropped else best[0], "stopped" in named)
    return made if named else None


def json_lines(path: Path | zipfile.Path) -> list[dict]:
    """The objects in a file of JSON lines, which may not be there; other lines are passed over."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    found = []
    for line in text.splitlines():
        with suppress(json.JSONDecodeError):  # a line that a kill or a full disk has torn
            found.append(json.loads(line))
    return [line for line in found if isinstance(line, dict)]


def rounds(*servers: Path, personal: bool = False, made: int = 0) -> tuple[Round, ...]:
    """The model that started each round, measured at the sites; the final model last.

    From FLARE's own artifacts: metrics/round_metrics.jsonl and cross_site_val. A round that a later
    job made again is the later one's; the final model has gone through as many as are `made`, where
    the records of some are not at hand. Unless every site has a `personal` model anyway, no value
    is given where a site had to warm columns up first, for it measured another model than the
    global one.
    """
    measured: dict[int, dict[str, dict[str, float]]] = {}
    for server in servers:
        measured.update(_measured(server))
    if final := _evaluations(servers[-1], "SRV_last"):
        measured[max([made, *(number + 1 for number in measured)])] = final
    if not measured:
        raise ResultsError(f"{servers[-1] / METRICS} does not exist; has the run finished?")
    return tuple(_round(number, sites, personal) for number, sites in sorted(measured.items()))


def _measured(server: Path) -> dict[int, dict[str, dict[str, float]]]:
    """Round -> site -> metric -> value."""
    return {
        entry["round"]: {
            site["name"]: {metric["name"]: metric["value"] for metric in site["metrics"]}
            for site in entry["sites"]
        }
        for entry in json_lines(server / METRICS)
    }


def _evaluations(server: Path, model: str) -> dict[str, dict[str, float]]:
    path = server / "cross_site_val" / "cross_val_results.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {site: models[model] for site, models in results.items() if models.get(model)}


def _round(number: int, sites: dict[str, dict[str, float]], personal: bool) -> Round:
    def value(metrics: dict[str, float], name: str) -> float | None:
        of_global = personal or not metrics.get("warmed_up") or name.endswith("_seconds")
        return metrics.get(name) if of_global else None

    losses = [loss for m in sites.values() if (loss := value(m, "bce")) is not None]
    return Round(
        round=number,
        mean_validation_bce=fmean(losses) if losses else None,
        sites={
            name: SiteRound(
                validation_bce=value(metrics, "bce"),
                validation_auroc=value(metrics, "auroc"),
                train_seconds=value(metrics, "train_seconds"),
                validate_seconds=value(metrics, "validate_seconds"),
            )
            for name, metrics in sorted(sites.items())
        },
    )


def refusals(*servers: Path) -> tuple[RefusedResult, ...]:
    """Results that the server refused or that never came; of a dropped round those of all sites."""
    return tuple(
        RefusedResult(e["round"], e.get("site", "all"), e["reason"], e.get("task", "train"))
        for e in _events(servers, "refused", "silent", "dropped")
    )


def filters(*servers: Path) -> list[str]:
    """Names of FLARE's filters that results say to have passed, each with the site."""
    return sorted({f"{e['filter']} ({e['site']})" for e in _events(servers, "filtered")})


def look_alikes(*servers: Path) -> list[str]:
    """Pairs of classes of different sites that may be one, with the reason."""
    return [
        f"{' and '.join(f'{name} ({listed(at)})' for name, at in e['classes'].items())}: "
        f"{e['reason']}"
        for e in _events(servers, "look_alike")
    ]


def last_manifest(server: Path) -> Mapping[str, Any]:
    """The manifest of the last model, in the run's last folder; empty where it is not there."""
    path = server / "models" / LAST_FILE
    return load(path).manifest if path.is_file() else {}


def contributions(
    manifest: Mapping[str, Any], sites: Sequence[str], *servers: Path
) -> dict[str, Contribution]:
    """In which rounds the sites of a job, and of those before it, contributed to its last model.

    By the model's manifest; by FLARE's record of the rounds where an older version wrote it.
    """
    found = contributed(manifest)
    for server in () if "contributed" in manifest else servers:
        for number, measured in _measured(server).items():
            found |= {site: spans(rounds_in(found.get(site, ())) | {number}) for site in measured}
    missed: dict[str, str] = {}
    for event in _events(servers, "refused", "silent"):
        if event["round"] not in {None, *rounds_in(found.get(event["site"], ()))}:
            missed.setdefault(event["site"], event["reason"])
    names = [*sites, *sorted(found.keys() - {*sites})]
    return {site: Contribution(found.get(site, ()), missed.get(site, "")) for site in names}


def rounds_run(*servers: Path) -> int:
    """How many rounds the run has made."""
    return len(_events(servers, "round"))


def stopped_early(*servers: Path) -> bool:
    """Whether the run ended because no better model came."""
    return bool(_events(servers, "stopped"))


def wall_seconds(*servers: Path) -> float:
    """Seconds from the start to the end of each job."""
    return sum(event["seconds"] for event in _events(servers, "ended"))


def _events(servers: tuple[Path, ...], *kinds: str) -> list[dict]:
    found = [event for server in servers for event in read_events(server)]
    return [event for event in found if event["event"] in kinds]


def personal_checkpoints(folders: Mapping[str, Path]) -> dict[str, Path]:
    """Site -> file of its own best model, where it has one in its folder of the job."""
    paths = {site: folder / BEST_FILE for site, folder in folders.items()}
    return {site: path for site, path in paths.items() if path.is_file()}


def best_checkpoint(server: Path) -> Path:
    """File of the best global model, in the run's last folder.

    Raises:
        ResultsError: There is none.
    """
    path = server / "models" / "best.npz"
    if not path.is_file():
        raise ResultsError(f"{path} does not exist; has the run finished?")
    return path


@dataclass(frozen=True)
class Rounds:
    """Rounds that a run's jobs have made, as far as known, and are to make; 0: not known."""

    made: int
    planned: int

    @property
    def all(self) -> bool:
        """Whether none is missing."""
        return self.made == self.planned

    def __str__(self) -> str:
        return f"{self.made} of {self.planned or 'an unknown number of'} rounds"


def left_a_model(server: Path) -> bool:
    """Whether a job left a model in the server's folder of it."""
    return (server / "models" / LAST_FILE).is_file()


def rounds_left(server: Path | None, jobs: Collection[str]) -> Rounds | None:
    """Rounds that the jobs of a run have made, by the last model that the last of them left.

    Rounds of a run that they continue do not count. None where there is no model, or the server's
    folder of that job is not at hand.
    """
    if server is None or not left_a_model(server):
        return None
    manifest = load(server / "models" / LAST_FILE).manifest
    earlier = [past["rounds"][0] for past in manifest.get("history", []) if past["job"] in jobs]
    made = int(manifest["round"]) - min(earlier, default=manifest.first_round)
    return Rounds(made, made + manifest.missing_rounds)

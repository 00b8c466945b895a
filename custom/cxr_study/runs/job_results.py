"""Read the results of jobs from the server's folders: rounds, metrics, refusals, best model.

A run is one job, or several that continue each other. In every function `servers` are the server's
folders of these jobs, oldest first, in a simulator workspace or in a download. Events are the lines
of a job's record, see `run_record`.
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

from cxr_study.common.wording import join_names
from cxr_study.evaluation.summary_json import Contribution, RefusedResult, Round, SiteRound
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.checkpoints.manifest import contributed, rounds_in
from surgical_aggregation.server.models.model_files import LAST_FILE
from surgical_aggregation.server.records.run_record import RECORD_FILE
from surgical_aggregation.site.site_memory import BEST_FILE

METRICS = "metrics/round_metrics.jsonl"
"""In the server's folder: FLARE's own record of the rounds, a line each."""

CROSS_SITE = "cross_site_val/cross_val_results.json"
"""In the server's folder: FLARE's own record of what the sites measured of which model."""

RecordEvent = dict[str, Any]
"""A line of a job's record; its kind is "event"."""


class ResultsError(ValueError):
    """The folder is not that of a finished run."""


def read_events(server: Path) -> list[RecordEvent]:
    """Read the events of a job in order.

    A newer version of this software may write other kinds, so callers select those that they know.

    Args:
        server: The server's folder of the job.

    Returns:
        The events; none if the job has not started, or the folder is not there.
    """
    return json_lines(server / RECORD_FILE)


@dataclass(frozen=True)
class Progress:
    """The progress of a job.

    Attributes:
        rounds: Number of completed rounds.
        best: Event of the best model so far, with its "round" and loss ("value"); None: none yet.
        stopped: Whether the job stopped early.
    """

    rounds: int = 0
    best: Mapping[str, Any] | None = None
    stopped: bool = False


def progress(events: Sequence[Mapping[str, Any]]) -> Progress | None:
    """Derive a job's progress from its events; None without events.

    Example:
        >>> progress([{"event": "started"}, {"event": "round"}, {"event": "round"}])
        Progress(rounds=2, best=None, stopped=False)
    """
    named = [event["event"] for event in events]
    best = [event for event in events if event["event"] in ("best", "best_dropped")][-1:]
    dropped = not best or best[0]["event"] == "best_dropped"
    made = Progress(named.count("round"), None if dropped else best[0], "stopped" in named)
    return made if named else None


def json_lines(path: Path | zipfile.Path) -> list[dict[str, Any]]:
    """Read the objects of a file of JSON lines.

    Lines that are not JSON objects are skipped: a kill or a full disk can leave a partial line.

    Args:
        path: The file; a missing one has no lines.
    """
    text, found = "", []
    with suppress(FileNotFoundError):  # also if FLARE removes it at this moment
        text = path.read_text(encoding="utf-8", errors="replace")
    for line in text.split("\n"):  # a text in JSON may have other line breaks of Unicode
        with suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return [line for line in found if isinstance(line, dict)]


def rounds(*servers: Path, personal: bool = False, made: int = 0) -> tuple[Round, ...]:
    """Metrics of every round: the global model that started it, validated at the sites.

    They come from FLARE's files metrics/round_metrics.jsonl and cross_site_val. If a continuing job
    repeated a round, its metrics replace the earlier ones. A site that had to warm up its columns
    before the validation measured another model than the global one; these values are left out.

    Args:
        servers: See the module.
        personal: Whether every site has a personal model. Then values after a warm-up are kept.
        made: Number of rounds that the final model has gone through, in case the folders of some
            jobs are missing. Default 0: the number of rounds found.

    Returns:
        In order of rounds; the last is the final model, if it was validated.

    Raises:
        ResultsError: No round was validated.
    """
    measured: dict[int, dict[str, dict[str, float]]] = {
        entry["round"]: {
            site["name"]: {metric["name"]: metric["value"] for metric in site["metrics"]}
            for site in entry["sites"]
        }
        for server in servers
        for entry in json_lines(server / METRICS)
    }
    last = {site: of.get("SRV_last") for site, of in cross_site(servers[-1]).items()}
    if final := {site: metrics for site, metrics in last.items() if metrics}:
        measured[max([made, *(number + 1 for number in measured)])] = final
    if not measured:
        raise ResultsError(f"{servers[-1] / METRICS} holds no round; has the run finished?")
    return tuple(_round(number, sites, personal) for number, sites in sorted(measured.items()))


def cross_site(server: Path) -> dict[str, dict[str, Any]]:
    """Site -> model, by its name in FLARE -> metric -> value; empty without such a record."""
    path = server / CROSS_SITE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _round(number: int, sites: dict[str, dict[str, float]], personal: bool) -> Round:
    """One round of a summary, from site -> metric -> value; see `rounds` for `personal`."""

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
    """List the results that the server refused or never received, in order.

    A dropped round is one entry, with "all" as its site.
    """
    return tuple(
        RefusedResult(
            e["round"],
            e.get("site", "all"),
            e.get("reason") or f"{e['count']} more results, not listed",
            e.get("task", "train"),
        )
        for e in _events(servers, "refused", "refused_too", "silent", "dropped")
    )


def filters(*servers: Path) -> list[str]:
    """List the FLARE filters that have changed results, each as "name (site)", sorted."""
    return sorted({f"{e['filter']} ({e['site']})" for e in _events(servers, "filtered")})


def look_alikes(*servers: Path) -> list[str]:
    """List pairs of class names of different sites that may mean one finding, with the reason.

    Each entry is a phrase such as "Effusion (nih) and Pleural Effusion (chexpert): same words".
    """
    return [
        f"{' and '.join(f'{name} ({join_names(at)})' for name, at in e['classes'].items())}: "
        f"{e['reason']}"
        for e in _events(servers, "look_alike")
    ]


def last_manifest(server: Path) -> Mapping[str, Any]:
    """Manifest of the last global model of a job; empty if the job has no model.

    Args:
        server: The server's folder of the job.

    Raises:
        CheckpointError: The model cannot be read.
    """
    path = server / "models" / LAST_FILE
    return load(path).manifest if path.is_file() else {}


def contributions(
    manifest: Mapping[str, Any], sites: Sequence[str], *servers: Path
) -> dict[str, Contribution]:
    """Find the rounds in which each site contributed to the last model.

    Args:
        manifest: Of the last model.
        sites: Of the last job, in the order of the result.
        servers: See the module.

    Returns:
        Site -> its rounds, and why it is missing from the first one that it missed. Sites of
        earlier jobs follow, sorted by name.
    """
    found = contributed(manifest)
    missed: dict[str, str] = {}
    for event in _events(servers, "refused", "silent"):
        if event["round"] not in {None, *rounds_in(found.get(event["site"], ()))}:
            missed.setdefault(event["site"], event["reason"])
    names = [*sites, *sorted(found.keys() - {*sites})]
    return {site: Contribution(found.get(site, ()), missed.get(site, "")) for site in names}


def rounds_run(*servers: Path) -> int:
    """Number of completed rounds of the run."""
    return len(_events(servers, "round"))


def stopped_early(*servers: Path) -> bool:
    """Whether the run stopped early, after `patience` rounds without a better model."""
    return bool(_events(servers, "stopped"))


def wall_seconds(*servers: Path) -> float:
    """Seconds from start to end, summed over the run's jobs that have ended."""
    return sum((float(event["seconds"]) for event in _events(servers, "ended")), 0.0)


def _events(servers: tuple[Path, ...], *kinds: str) -> list[RecordEvent]:
    found = [event for server in servers for event in read_events(server)]
    return [event for event in found if event["event"] in kinds]


def personal_checkpoints(folders: Mapping[str, Path]) -> dict[str, Path]:
    """Find the personal models of sites.

    Args:
        folders: Site -> folder of its own files of the job, which need not exist.

    Returns:
        Site -> file of its best personal model, for the sites that have one.
    """
    paths = {site: folder / BEST_FILE for site, folder in folders.items()}
    return {site: path for site, path in paths.items() if path.is_file()}


def best_checkpoint(server: Path) -> Path:
    """File of the best global model of a job.

    Args:
        server: The server's folder of the job; of a run, the last one.

    Raises:
        ResultsError: The job has none.
    """
    path = server / "models" / "best.npz"
    if not path.is_file():
        raise ResultsError(f"{path} does not exist; has the run finished?")
    return path


@dataclass(frozen=True)
class Rounds:
    """Rounds of a run, over all of its jobs.

    Attributes:
        made: Number of completed rounds, as far as known.
        planned: Number of rounds that are to be made; 0: not known.

    Example:
        >>> str(Rounds(3, 10))
        '3 of 10 rounds'
    """

    made: int
    planned: int

    @property
    def complete(self) -> bool:
        """Whether all planned rounds are made."""
        return self.made == self.planned

    def __str__(self) -> str:
        return f"{self.made} of {self.planned or 'an unknown number of'} rounds"


def has_last_model(server: Path) -> bool:
    """Whether a job has saved a model of at least one round in the server's folder of it."""
    return (server / "models" / LAST_FILE).is_file()


def rounds_made(server: Path | None, jobs: Collection[str]) -> Rounds | None:
    """Count the rounds of a run from the manifest of its last model.

    Args:
        server: The server's folder of the run's last job; None: it could not be downloaded.
        jobs: Ids of the run's jobs. Rounds of jobs that the run continues do not count.

    Returns:
        None without the folder, or if the job has no model.
    """
    if server is None or not has_last_model(server):
        return None
    manifest = load(server / "models" / LAST_FILE).manifest
    earlier = [past["rounds"][0] for past in manifest.get("history", []) if past["job"] in jobs]
    made = int(manifest["round"]) - min(earlier, default=manifest.first_round)
    return Rounds(made, made + manifest.missing_rounds)

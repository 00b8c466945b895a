"""The job of a federated row in FLARE's simulator: and the models that it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cxr_studies.plan.row import Row
from cxr_study.jobs.job import Job
from cxr_study.jobs.methods import METHODS
from cxr_study.jobs.presets import Settings
from cxr_study.runs.finished_run import checkpoint_folder
from surgical_aggregation.aggregation import strategy
from surgical_aggregation.server.models.model_files import BEST_FILE, LAST_FILE
from surgical_aggregation.site.site_memory import BEST_FILE as SITE_BEST_FILE
from surgical_aggregation.site.site_memory import LAST_FILE as SITE_LAST_FILE

Models = Mapping[str, Path]
"""Site -> checkpoint of the model that is measured there."""


def job_of(
    row: Row,
    *,
    sites: Sequence[str],
    union: Sequence[str],
    settings: Settings,
    preset: str | None = None,
) -> Job:
    """The job of a federated row, with the `union` of the sites' classes.

    All sites take part in every round, with one thread each. Settings win over the preset, but not
    over the row's strategy.
    """
    own: dict[str, object] = {"threads": 1, "min_clients": len(sites)}
    if METHODS[row.method].union_head:
        own["union"] = ",".join(union)
    own |= {**settings, "strategy": row.job_strategy}
    return Job.asked(row.method, sites=sites, preset=preset, settings=own)


def is_personal(row: Row) -> bool:
    """Whether every site ends with a model of its own."""
    head = METHODS[row.method].personal_head
    return strategy.has_personal(row.job_strategy, personal_head=head)


def models(row: Row, workspace: Path, sites: Sequence[str], *, best: bool) -> Models:
    """The best (or last) models of a run in FLARE's workspace: a global one, or the sites' own."""
    if not is_personal(row):
        model = checkpoint_folder(workspace) / (BEST_FILE if best else LAST_FILE)
        return dict.fromkeys(sites, model)
    file = SITE_BEST_FILE if best else SITE_LAST_FILE
    return {site: checkpoint_folder(workspace, site) / file for site in sites}

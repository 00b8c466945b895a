"""The settings of a study's runs: those of the data file on top of a preset's and the jobs' own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cxr_studies.baseline import baseline_run
from cxr_studies.plan import method_job
from cxr_studies.plan.data_file import DataFileError, StudyData
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Scenario, StudyFileError
from cxr_study.jobs.presets import Settings, with_preset
from cxr_study.runs.run_request import check_network

OWN_SETTINGS = (
    "continues", "initial_body", "min_clients", "seed", "sites", "strategy", "tracking", "union",
)  # fmt: skip
"""Settings that a study sets itself."""

NETWORK = ("backbone", "image_size", "hidden")
"""Settings of the network, which all runs have in common."""

_SAME_RECIPE = {"complete": "centralised"}
"""Method that differs from one of `baseline_run.METHODS` in its site files alone -> that one."""


def check(
    data: StudyData,
    scenarios: Iterable[Scenario] = (),
    rows: Mapping[Row, Settings] = MappingProxyType({}),
) -> None:
    """Refuse settings that no training could use, before any data are read.

    Args:
        data: With settings for all trainings.
        scenarios: With settings for theirs.
        rows: With the settings of their variants.

    Raises:
        DataFileError: A setting is the study's own, or no job could run with it; names the file.
        StudyFileError: The same of a scenario's or a variant's; names it.
        ValueError: The initial body is of another network.
    """
    if own := [name for name in data.settings if name in OWN_SETTINGS]:
        raise DataFileError(
            f"{data.path}: key 'settings': a study sets {own[0]!r} itself; leave it out."
        )
    try:
        _try(data, {})
        used = network(data)
    except ValueError as error:
        raise DataFileError(f"{data.path}: key 'settings': {error}") from error
    check_network(data.initial_body, used["backbone"], used["hidden"])
    for scenario in scenarios:
        place = f"scenario {scenario.name!r}, key 'settings'"
        if own := [name for name in scenario.settings if name in (*OWN_SETTINGS, *NETWORK)]:
            raise StudyFileError(f"{place}: {own[0]!r} is the same in all scenarios; leave it out.")
        try:
            _try(data, scenario.settings)
        except ValueError as error:
            raise StudyFileError(f"{place}: {error}") from error
    for row, settings in rows.items():
        _check_variant(data, row, settings)


def _check_variant(data: StudyData, row: Row, settings: Settings) -> None:
    place = f"variant {row.variant!r} of method {row.method!r}"
    if own := [name for name in settings if name in (*OWN_SETTINGS, *NETWORK)]:
        raise StudyFileError(f"{place}: {own[0]!r} is the study's to set; leave it out.")
    try:
        if row.federated:
            _try(data, settings, row)
        else:
            baseline_run.all_settings(baseline_method(row), settings)
    except ValueError as error:
        raise StudyFileError(f"{place}: {error}") from error


# This job has all settings that a data file can set; others leave some out.
_ANY = Row("surgical", "fedbn+")


def _try(data: StudyData, more: Settings, row: Row = _ANY) -> None:
    all_settings(row, ("site",), (), data.preset, {**data.settings, **more})


def all_settings(
    row: Row,
    sites: Sequence[str],
    union: Sequence[str],
    preset: str | None,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """Every setting of a training, those that nobody has set included.

    `given` wins over the preset, see `PRESETS`; the union has the classes of all sites.

    Raises:
        ValueError: A setting is unknown, or its value unusable.
    """
    if not row.federated:
        return _without_federation(row, sites, union, preset, given)
    job = method_job.job_of(row, sites=sites, union=union, settings=given, preset=preset)
    return dict(job.settings)


def baseline_method(row: Row) -> str:
    """Which of `baseline_run.METHODS` trains a row without a federation."""
    return _SAME_RECIPE.get(row.method, row.method)


def _without_federation(
    row: Row, sites: Sequence[str], union: Sequence[str], preset: str | None, given: Settings
) -> dict[str, Any]:
    """Settings that mean something without a federation.

    What a preset says for one site counts where that site is the only one and trains alone.
    """
    alone = sites if row.method == "individual" and len(sites) == 1 else ()
    settings, per_site = with_preset(preset, given, {}, alone)
    settings |= per_site.get(sites[0], {})
    own: dict[str, object] = {"threads": 1}
    if row.method != "individual":
        own["union"] = ",".join(union)
    own |= {name: value for name, value in settings.items() if name in baseline_run.SETTINGS}
    return baseline_run.all_settings(baseline_method(row), {**own, "strategy": row.job_strategy})


def network(data: StudyData) -> dict[str, Any]:
    """The settings of all trainings' network: backbone, image_size and hidden."""
    settings, _ = with_preset(data.preset, data.settings, {}, ())
    own = {name: value for name, value in settings.items() if name in baseline_run.SETTINGS}
    found = baseline_run.all_settings("individual", own)
    return {name: found[name] for name in NETWORK}

"""The settings of a study's runs.

In rising precedence: the jobs' defaults, the preset, the data file's `settings`, the scenario's,
the variant's, and `per_site` for a site alone, except what a scenario or variant sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cxr_studies.baseline import baseline_run
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Scenario
from cxr_study.common.errors import InputError
from cxr_study.jobs.job import Job
from cxr_study.jobs.methods import METHODS
from cxr_study.jobs.presets import Settings, with_preset
from cxr_study.runs.run_request import check_network

OWN_SETTINGS = (
    "continues", "initial_body", "min_clients", "seed", "sites", "strategy", "tracking", "union",
)  # fmt: skip
"""Settings that a study sets itself; data files and scenarios must leave them out."""

NETWORK = ("backbone", "image_size", "hidden")
"""Settings of the network, which all runs of a study have in common."""

_SAME_RECIPE = {"complete": "centralised"}
"""Method that differs from one of `baseline_run.METHODS` in its site files alone -> that one."""

# This job has all settings that a data file can set; others leave some out.
_ANY = Row("surgical", "fedbn+")


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
        InputError: A setting is the study's own, or no job could run with it; names the file, the
            scenario or the variant.
        ValueError: The initial body is of another network.
    """
    _check(f"{data.path}: key 'settings'", data, data.settings, own=OWN_SETTINGS)
    used = network(data)
    check_network(data.initial_body, used["backbone"], used["hidden"])
    for scenario in scenarios:
        _check(f"scenario {scenario.name!r}, key 'settings'", data, scenario.settings)
    for row, settings in rows.items():
        _check(f"variant {row.variant!r} of method {row.method!r}", data, settings, row)


def check_per_site(data: StudyData, sites: Sequence[str]) -> None:
    """Refuse settings of one site: for a site of no scenario, or that must be equal at all sites.

    Args:
        data: With settings for some sites.
        sites: Names of the sites of all scenarios.

    Raises:
        InputError: See above; names the file and the key.
    """
    for site, settings in data.per_site.items():
        place = f"{data.path}: key 'per_site', key '{site}'"
        _refuse_own(place, settings, (*OWN_SETTINGS, *NETWORK))
        try:
            all_settings(_ANY, sites, (), data.preset, data.settings, {site: settings})
        except ValueError as error:
            raise InputError(f"{place}: {error}") from error


def _refuse_own(place: str, settings: Settings, own: Sequence[str]) -> None:
    """Refuse settings that the study sets itself; `place` names where they are given."""
    if taken := [name for name in settings if name in own]:
        raise InputError(
            f"{place}: {taken[0]!r} is the study's, the same in all its runs; leave it out."
        )


def _check(
    place: str,
    data: StudyData,
    settings: Settings,
    row: Row = _ANY,
    own: Sequence[str] = (*OWN_SETTINGS, *NETWORK),
) -> None:
    """Refuse settings with which the job, or the training without a federation, could not run."""
    _refuse_own(place, settings, own)
    try:
        if row.federated:
            all_settings(row, ("site",), (), data.preset, {**data.settings, **settings})
        else:
            baseline_run.all_settings(baseline_method(row), settings)
    except ValueError as error:
        raise InputError(f"{place}: {error}") from error


def job_of(
    row: Row,
    sites: Sequence[str],
    union: Sequence[str],
    preset: str | None,
    given: Settings,
    per_site: Mapping[str, Settings] = MappingProxyType({}),
) -> Job:
    """The job of a federated row.

    Every round waits for all sites, each with one thread. Settings win over the preset, but not
    over the row's strategy; those for one site win over both.

    Args:
        row: Method and strategy.
        sites: Names of all sites.
        union: Classes of all sites together; used by methods with a head for the union.
        preset: Name of a preset, or None.
        given: Setting -> value, for all sites.
        per_site: Site -> setting -> value.

    Raises:
        ValueError: A setting is unknown, or its value unusable.
    """
    own: dict[str, object] = {"threads": 1, "min_clients": len(sites)}
    if METHODS[row.method].union_head:
        own["union"] = ",".join(union)
    own |= {**given, "strategy": row.job_strategy}
    return Job.asked(row.method, sites=sites, preset=preset, settings=own, per_site=per_site)


def all_settings(
    row: Row,
    sites: Sequence[str],
    union: Sequence[str],
    preset: str | None,
    given: Settings,
    per_site: Mapping[str, Settings] = MappingProxyType({}),
) -> dict[str, Any]:
    """Every setting of a training, including defaults.

    Without a federation, what a preset or `per_site` sets for one site applies where that site
    trains alone.

    Args:
        row: Method and strategy.
        sites: Names of the sites whose data are used.
        union: Classes of all sites together.
        preset: Name of a preset, or None; `given` wins over it.
        given: Setting -> value, for all sites.
        per_site: Site -> setting -> value.

    Returns:
        Setting -> value.

    Raises:
        ValueError: A setting is unknown, or its value unusable.
    """
    if row.federated:
        return dict(job_of(row, sites, union, preset, given, per_site).settings)
    alone = sites if row.method == "individual" and len(sites) == 1 else ()
    theirs = {site: per_site[site] for site in alone if site in per_site}
    settings, own_settings = with_preset(preset, given, theirs, alone)
    settings |= own_settings.get(sites[0], {})
    own: dict[str, object] = {"threads": 1}
    if row.method != "individual":
        own["union"] = ",".join(union)
    own |= {name: value for name, value in settings.items() if name in baseline_run.SETTINGS}
    return baseline_run.all_settings(baseline_method(row), {**own, "strategy": row.job_strategy})


def baseline_method(row: Row) -> str:
    """The key of `baseline_run.METHODS` that trains a row without a federation."""
    return _SAME_RECIPE.get(row.method, row.method)


def network(data: StudyData) -> dict[str, Any]:
    """The settings of the network of all trainings.

    Args:
        data: With preset and settings.

    Returns:
        backbone, image_size and hidden.
    """
    found = all_settings(_ANY, ("site",), (), data.preset, data.settings)
    return {name: found[name] for name in NETWORK}

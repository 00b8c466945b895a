"""A job: a method, its sites, and the value of each setting, checked before anything starts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cxr_study.common.spelling import nearest
from cxr_study.jobs import folder as job_folder
from cxr_study.jobs.folder import CLIENT_APP, META, SERVER_APP, JobFolder
from cxr_study.jobs.methods import JOBS, METHODS
from cxr_study.jobs.presets import JobError, Settings, parse, with_preset

if TYPE_CHECKING:
    from cxr_study.jobs.settings import JobSettings

__all__ = ["Job"]

ALIKE = (
    "backbone", "image_size", "hidden", "union", "strategy", "weighting",
)  # fmt: skip
"""Settings of a site that must be equal at all sites."""

SITE = "cxr_study.training.chest_xray_site.ChestXraySite"
"""Path of the component that provides a chest X-ray site's classes, network and data."""

DEFAULT_SITES = ("nih", "chexpert")

_SITE_NAME = re.compile(r"(?!server$)\w[\w-]*", re.ASCII)  # as FLARE provisions them


@dataclass(frozen=True)
class Job:
    """A job: everything that a run, a submission or a report needs to know of it.

    Immutable. Build one with `Job.asked`, `Job.of` or `Job.from_folder`, and change it with
    `with_settings`.

    Attributes:
        name: FLARE's name of the job.
        sites: Names of the participating sites.
        settings: Setting -> value, of the server and the sites, defaults included.
        of_site: Names of the settings that act at a site.
        per_site: Site -> setting -> value, where a site's value differs.
        method: One of `JOBS`; for a job folder, the name in it, which may be any.
        folder: The job folder that was given; None: the method's own components are used.
    """

    name: str
    sites: tuple[str, ...]
    settings: Mapping[str, Any]
    of_site: frozenset[str]
    per_site: Mapping[str, Settings] = field(default_factory=dict)
    method: str = ""
    folder: JobFolder | None = None

    @classmethod
    def of(cls, job: str | Path) -> Job:
        """The job with this name, at its defaults for the phantom's sites, or that of a folder.

        Args:
            job: A name or a job folder. A folder of that name in the working directory wins.

        Raises:
            JobError: It is neither.
        """
        if Path(job, META).is_file():
            return cls.from_folder(Path(job))
        if str(job) not in JOBS:
            raise JobError(
                f"there is no job {str(job)!r}: no such folder holds {META}, and no job has this "
                f"name; {nearest(Path(job).name, JOBS)}."
            )
        from cxr_study.jobs.settings import acting_at, defaults

        own = defaults(str(job))
        of_site = acting_at("site") & own.keys()
        return cls(str(job), DEFAULT_SITES, own, of_site, method=str(job))

    @classmethod
    def from_folder(cls, path: Path) -> Job:
        """The job of a job folder, see `folder.read`.

        The values at the top of its configurations are the job's settings; everything else in
        them stays unchanged.

        Raises:
            JobError: It is not a job folder, or a file in it cannot be read.
        """
        found = job_folder.read(path)
        configs = {app: job_folder.top(config) for app, config in found.clients.items()}
        shared = next(iter(configs.values()))
        settings = {**job_folder.top(found.server), **shared}
        per_site = {
            site: {name: value for name, value in configs[app].items() if value != shared.get(name)}
            for site, app in found.apps.items()
            if app != CLIENT_APP
        }
        name = str(found.meta["name"])
        return cls(name, tuple(found.apps), settings, frozenset(shared), per_site, name, found)

    @classmethod
    def asked(
        cls,
        job: str | Path,
        *,
        sites: Sequence[str] = (),
        preset: str | None = None,
        given: Sequence[str] = (),
        settings: Settings | None = None,
        per_site: Mapping[str, Settings] | None = None,
    ) -> Job:
        """The job that a command line or a script asks for, checked.

        Of several values for a setting, one for a single site wins over one for all sites; else
        `settings` and `per_site` win over `given`, and `given` over the preset.

        Args:
            job: One of `JOBS`, or a job folder; see `of`.
            sites: Names of the sites. Default: the job's own.
            preset: Name of a preset of `PRESETS`, or several, separated by commas. A job that
                trains nothing takes the settings that it has. Default: none.
            given: Settings as text, NAME=VALUE or SITE:NAME=VALUE; see `presets.parse`.
            settings: Setting -> value, at the server and all sites.
            per_site: Site -> setting -> value, at that site.

        Raises:
            JobError: There is no such job, preset, setting or site; a value has another type; the
                job needs more sites; or it has no rounds.
            ValueError: A value is unknown or out of range, or contradicts another.

        Example:
            >>> job = Job.asked("surgical", sites=["a", "b"], settings={"num_rounds": 20})
            >>> job.sites, job.settings["num_rounds"], job.settings["strategy"]
            (('a', 'b'), 20, 'fedbn+')
        """
        found = cls.of(job)
        names = tuple(sites) or found.sites
        words, own = parse(given)
        own |= {site: {**own.get(site, {}), **each} for site, each in (per_site or {}).items()}
        explicit = {**words, **(settings or {})}
        shared, own = with_preset(preset, explicit, own, names if found.trains else ())
        known = explicit.keys() | found.settings.keys()
        if not found.trains:  # a preset's recipe of training does not apply, its network does
            shared = {name: value for name, value in shared.items() if name in known}
        if strange := [name for name in shared if name not in known]:
            raise JobError(
                f"job {found.name!r} has no setting {strange[0]!r}, which preset {preset!r} sets. "
                "Leave the preset out, and --set what you need of it."
            )
        made = found.with_settings(shared, own, sites=names)
        made.check()
        return made

    def with_settings(
        self,
        settings: Settings,
        per_site: Mapping[str, Settings] | None = None,
        *,
        sites: Sequence[str] | None = None,
    ) -> Job:
        """A copy of the job with other settings or sites.

        Args:
            settings: Setting -> value, at the server and all sites; replaces values of single
                sites.
            per_site: Site -> setting -> value, at that site only.
            sites: Names of the sites. Default: unchanged.

        Raises:
            JobError: The job has no such setting, or it must be equal at all sites (`ALIKE`); a
                value has another type; a site is not one of `sites`, or its name is not usable.
            ValueError: A value is unknown or out of range; see `settings.checked`.
        """
        names, per_site = self.sites if sites is None else tuple(sites), per_site or {}
        check_names(names)
        self._check_known(settings, self.settings, f"job {self.name!r}")
        for site, values in per_site.items():
            _check_per_site(site, values, names)
            known = {name: self.settings[name] for name in self.of_site}
            self._check_known(values, known, f"a site of job {self.name!r}")
        own = {
            site: {name: value for name, value in values.items() if name not in settings}
            for site, values in self.per_site.items()
            if site in names
        }
        for site, values in per_site.items():
            own[site] = {**own.get(site, {}), **values}
        made = replace(self, sites=names, settings={**self.settings, **settings}, per_site=own)
        _ = made._own_settings, made.at_server  # checks them
        return made

    def check(self) -> None:
        """Check that the job can run.

        Raises:
            JobError: It has fewer sites than `min_clients` (two if that is 0), or trains for 0
                rounds without continuing an earlier job.
        """
        typed = self.at_server
        if typed.num_rounds == 0 and not typed.continues:
            raise JobError(
                "setting 'num_rounds' must be 1 or more; got 0. A submitted job that runs the "
                "missing rounds of an earlier one needs continues=<the earlier job's id> as well."
            )
        needed = typed.min_clients or 2  # one site only on request
        if len(self.sites) < needed:
            raise JobError(
                f"this job needs the results of {needed} sites; got {', '.join(self.sites)}. Add "
                f"sites, or set min_clients={len(self.sites)}."
            )

    @cached_property
    def at_server(self) -> JobSettings:
        """The settings as a typed object, without the values of single sites; checked once."""
        return _checked(self.settings)

    def at(self, site: str) -> JobSettings:
        """The settings of one site as a typed object."""
        return self._own_settings.get(site, self.at_server)

    @cached_property
    def _own_settings(self) -> dict[str, JobSettings]:
        own = {site: values for site, values in self.per_site.items() if values}
        return {site: _checked({**self.settings, **values}) for site, values in own.items()}

    @property
    def trains(self) -> bool:
        """Whether the job trains a model."""
        return "num_rounds" in self.settings

    @property
    def encrypted(self) -> bool:
        """Whether sites encrypt their models homomorphically."""
        if self.folder is None:
            return self.method in METHODS and METHODS[self.method].encrypted
        classes = self.folder.classes
        return any(path.startswith("surgical_aggregation.encryption.") for path in classes)

    @property
    def has_own_site(self) -> bool:
        """Whether the job has a `Site` component other than the chest X-ray one."""
        return self.folder is not None and SITE not in self.folder.classes

    def app(self, site: str) -> str:
        """Name of a site's app; a site with its own settings has its own app."""
        return f"app_{site}" if site in self.per_site else CLIENT_APP

    def site_settings(self, site: str) -> dict[str, Any]:
        """Setting -> value, as written into a site's app."""
        own = {**self.settings, **self.per_site.get(site, {})}
        return {name: own[name] for name in own if name in self.of_site}

    def _check_known(self, settings: Settings, known: Settings, whose: str) -> None:
        check_known(settings, known, whose)
        from cxr_study.jobs.settings import JobSettings

        for name in settings.keys() - JobSettings.model_fields.keys():  # that only this job has
            if type(settings[name]) is not type(known[name]):
                raise JobError(
                    f"setting {name!r} needs a value like the job's own {known[name]!r}; got "
                    f"{settings[name]!r}."
                )


def _checked(settings: Settings) -> JobSettings:
    from cxr_study.jobs.settings import checked  # takes a quarter of a second

    return checked(settings)


def check_known(settings: Settings, known: Settings, whose: str) -> None:
    """Check the names of settings.

    Args:
        settings: Setting -> value.
        known: Setting -> value, of all settings that there are.
        whose: Whose settings they are, for the message: "job 'surgical'".

    Raises:
        JobError: A setting is unknown; suggests the nearest.
    """
    for name in settings:
        if name not in known:
            raise JobError(f"{whose} has no setting {name!r}; {nearest(name, tuple(known))}.")


def check_names(sites: Sequence[str]) -> None:
    """Check the names of sites.

    Raises:
        JobError: There is none, one is repeated, or FLARE cannot use one.
    """
    strange = [site for site in sites if not _SITE_NAME.fullmatch(site)]
    if not sites or strange or len(set(sites)) < len(sites):
        raise JobError(
            "sites need different names of the letters a to z and A to Z, digits, - and _, other "
            f"than 'server'; got {', '.join(map(repr, sites)) or 'none'}."
        )


def _check_per_site(site: str, values: Settings, sites: Sequence[str]) -> None:
    """Refuse settings for a site that is not in the job, or that must be equal at all sites."""
    if site not in sites:
        raise JobError(
            f"settings are given for site {site!r}, which is not in the job; "
            f"{nearest(site, tuple(sites))}."
        )
    if f"app_{site}" in (SERVER_APP, CLIENT_APP):
        raise JobError(
            f"a site with its own settings cannot be called {site!r}: its app would have the name "
            "of a shared one. Rename the site."
        )
    for name in ALIKE:
        if name in values:
            raise JobError(
                f"setting {name!r} must be the same at every site; it is given for site {site!r}. "
                f"Set it for all of them: {name}={values[name]}"
            )

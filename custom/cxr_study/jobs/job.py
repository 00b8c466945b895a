"""A job: a method, its sites, and the value of every setting, checked before anything starts."""

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
"""Settings of a site that must be the same at all of them."""

SITE = "cxr_study.training.chest_xray_site.ChestXraySite"
"""The class that brings a site's classes, network and data, as a configuration names it."""

DEFAULT_SITES = ("nih", "chexpert")

_SITE_NAME = re.compile(r"\w[\w.@-]*")


@dataclass(frozen=True)
class Job:
    """What is to be run, by whom: everything that a run, a submission or a report needs to know.

    Attributes:
        name: FLARE's name of it.
        sites: Names of the sites.
        settings: Setting -> value, of server and sites, those that nobody has changed included.
        per_site: Site -> setting -> value, where it differs at that site.
        of_site: Names of the settings that a site has.
        method: One of `JOBS`; of a folder its name, whatever it is.
        folder: What was handed in, if it was a folder; None: the method's own parts.
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
        """The job of a method by its name, for the sites of the phantom, or that of a folder.

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
        """The job of a folder; what is not at the top of its configurations stays as it is.

        Raises:
            JobError: It is no folder of a job, or a file in it cannot be read.
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
        """The job that a command line asks for, or Python: see `of`.

        Args:
            job: One of `JOBS`, or a folder.
            sites: Names of the sites. Default: the job's own.
            preset: See `PRESETS`; several by comma.
            given: Settings as words, NAME=VALUE or SITE:NAME=VALUE; they win over the preset.
            settings: Setting -> value, for all sites; they win over these words.
            per_site: Site -> setting -> value; they win over words for that site.

        Raises:
            JobError: No such job, preset, setting or site, a value of another type, fewer sites
                than the job waits for, or no round to make.
            ValueError: A value is unknown, or does not go with another.

        Example:
            >>> Job.asked("surgical", sites=["a", "b"], settings={"num_rounds": 20})
        """
        found = cls.of(job)
        names = tuple(sites) or found.sites
        words, own = parse(given)
        own |= {site: {**own.get(site, {}), **each} for site, each in (per_site or {}).items()}
        shared, own = with_preset(preset, {**words, **(settings or {})}, own, names)
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
        """This job with other settings or sites.

        Args:
            settings: Setting -> value, at the server and at every site.
            per_site: Site -> setting -> value, at that site alone.
            sites: Names of the sites. Default: the same.

        Raises:
            JobError: A setting is not the job's, or not one that sites may differ in; its value is
                of another type; a site is none of `sites`, or no name.
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
        """Refuse what nobody could run: too few sites, and a training without rounds.

        Raises:
            JobError: See above.
        """
        typed = self.at_server
        if typed.num_rounds == 0 and not typed.continues:
            raise JobError(
                "setting 'num_rounds' must be 1 or more, or 0 in a job that makes up for the "
                "rounds that an earlier one has not made; got 0. Set continues=<the earlier job's "
                "id> as well."
            )
        needed = typed.min_clients or 2  # a federation of one is asked for
        if len(self.sites) < needed:
            raise JobError(
                f"this job needs the results of {needed} sites; got {', '.join(self.sites)}. Add "
                f"sites, or set min_clients={len(self.sites)}."
            )

    @cached_property
    def at_server(self) -> JobSettings:
        """The settings, typed, as the sites share them; checked once."""
        return _checked(self.settings)

    def at(self, site: str) -> JobSettings:
        """The settings, typed, of one site."""
        return self._own_settings.get(site, self.at_server)

    @cached_property
    def _own_settings(self) -> dict[str, JobSettings]:
        own = {site: values for site, values in self.per_site.items() if values}
        return {site: _checked({**self.settings, **values}) for site, values in own.items()}

    @property
    def trains(self) -> bool:
        """Whether it trains a model."""
        return "num_rounds" in self.settings

    @property
    def encrypted(self) -> bool:
        """Whether its models are homomorphically encrypted."""
        if self.folder is None:
            return self.method in METHODS and METHODS[self.method].encrypted
        classes = self.folder.classes
        return any(path.startswith("surgical_aggregation.encryption.") for path in classes)

    @property
    def has_own_site(self) -> bool:
        """Whether its sites are not those of this application: it names another `Site`."""
        return self.folder is not None and SITE not in self.folder.classes

    def app(self, site: str) -> str:
        """Name of a site's app, which no other site sees where it has settings of its own."""
        return f"app_{site}" if site in self.per_site else CLIENT_APP

    def site_settings(self, site: str) -> dict[str, Any]:
        """Setting -> value, as they stand in a site's app."""
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
    """Refuse settings that a job or a site (`whose`, for the message) does not have."""
    for name in settings:
        if name not in known:
            raise JobError(f"{whose} has no setting {name!r}; {nearest(name, tuple(known))}.")


def check_names(sites: Sequence[str]) -> None:
    """Refuse no sites, a name that FLARE could not use, or one name twice."""
    strange = [site for site in sites if not _SITE_NAME.fullmatch(site)]
    if not sites or strange or len(set(sites)) < len(sites):
        raise JobError(
            "sites need names of letters, digits and -._@, each another; got "
            f"{', '.join(map(repr, sites)) or 'none'}."
        )


def _check_per_site(site: str, values: Settings, sites: Sequence[str]) -> None:
    """Refuse settings for a site that takes no part, or that must be the same at every site."""
    if site not in sites:
        raise JobError(
            f"settings are given for site {site!r}, which takes no part; "
            f"{nearest(site, tuple(sites))}."
        )
    if f"app_{site}" in (SERVER_APP, CLIENT_APP):
        raise JobError(
            f"a site with settings of its own needs another name than {site!r}: its app would have "
            "the name of the others'. Rename the site."
        )
    for name in ALIKE:
        if name in values:
            raise JobError(
                f"setting {name!r} must be the same at every site; it is given for site {site!r}. "
                f"Set it for all of them: {name}={values[name]}"
            )

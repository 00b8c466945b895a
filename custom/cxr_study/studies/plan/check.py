"""Whether a study can be made on some data, as far as that is known before they are read."""

from __future__ import annotations

from pathlib import Path

from cxr_study.deployment.poc_project import PocProject
from cxr_study.studies.plan import run_settings
from cxr_study.studies.plan.data_file import StudyData
from cxr_study.studies.plan.selection import Selection, StudyError, trainings
from cxr_study.studies.plan.setting import Setting
from cxr_study.studies.plan.study_file import Study


def check(
    study: Study, data: StudyData, selection: Selection, project: Path | None = None
) -> tuple[str, ...]:
    """Refuse what could not be made, before any data are read.

    Args:
        study: What is varied.
        data: On which data.
        selection: Of settings, methods and seeds.
        project: See `plan.runs`.

    Returns:
        Names of the data sets that are needed, of those that the data file has.

    Raises:
        StudyError: What is selected is unknown or nothing, a data set that sites train on or every
            one to test on is missing, or the project does not have the sites.
        ValueError: A knob, the network or the initial body is unusable.
    """
    settings = dict.fromkeys(setting for _, setting, _ in trainings(study, selection))
    trained = list(dict.fromkeys(name for setting in settings for name in setting.data_sets))
    if missing := [name for name in trained if not data.has(name)]:
        raise StudyError(_lacking(study, "trains on", missing[0], data))
    tested = [name for name in study.tests if data.has(name)]
    if not tested:
        raise StudyError(_lacking(study, "is tested on", " and ".join(study.tests), data))
    for setting in settings:
        _check_project(setting, project)
    run_settings.check(data)
    return tuple(dict.fromkeys([*trained, *tested]))


def _lacking(study: Study, does: str, name: str, data: StudyData) -> str:
    return (
        f"study {study.name} {does} {name}; data file {data.path} has "
        f"{', '.join(data.sources)}. Add it to the key 'data'."
    )


def _check_project(setting: Setting, project: Path | None) -> None:
    """Refuse sites that a POC would not have."""
    if project is None:
        return
    known = PocProject.read(project).sites
    if not isinstance(setting.sites, tuple) or not set(setting.sites) <= set(known):
        raise StudyError(
            f"{project} has the sites {', '.join(known)}; setting {setting.name!r} has "
            "others. Leave --poc out, or give another --project."
        )

"""The job folders: a template for every method of the papers, and one for an evaluation."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cxr_study.common.spelling import nearest
from cxr_study.jobs import code_shipping, job_folder
from cxr_study.jobs.command_line_settings import JobError, Settings, with_preset
from cxr_study.jobs.components import PATHS
from cxr_study.jobs.job_folder import CLIENT_CONFIG, META, SERVER_CONFIG
from cxr_study.jobs.methods import METHODS

EVALUATION = "evaluation"
"""The job that measures a model and trains none."""

JOBS = (*METHODS, EVALUATION)


def write(name: str, folder: Path, code: str = "marked") -> None:
    """Write the folder of one of `JOBS`, for the two sites of the phantom.

    Args:
        name: The job's.
        folder: New folder.
        code: How its code gets to server and sites, one of `code_shipping.WAYS`.

    Raises:
        JobError: There is no such job or way.
    """
    if name not in JOBS:
        raise JobError(f"there is no method {name!r}; {nearest(name, JOBS)}.")
    if code not in code_shipping.WAYS:
        raise JobError(f"code must be one of {', '.join(code_shipping.WAYS)}; got {code!r}.")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from cxr_study.jobs.job_settings import lines

    environment = Environment(
        loader=PackageLoader("cxr_study.jobs", "templates"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        autoescape=False,  # HOCON, not HTML
    )
    prefix = "" if name in METHODS else f"{name}_"
    for template, path in {
        "meta.json.j2": META,
        f"{prefix}server.conf.j2": SERVER_CONFIG,
        f"{prefix}client.conf.j2": CLIENT_CONFIG,
    }.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=path != META)
        text = environment.get_template(template).render(
            name=name, method=METHODS.get(name), settings=lines, path=PATHS
        )
        file.write_text(text, "utf-8")
    for app in (job_folder.SERVER_APP, job_folder.CLIENT_APP):
        code_shipping.add(folder / app, code)


@contextmanager
def opened(job: Path) -> Iterator[Path]:
    """The folder of a job, given as a folder or as one of `JOBS`; that of a name is temporary.

    Raises:
        JobError: It is neither.
    """
    if (job / META).is_file():
        yield job
    elif str(job) in JOBS:
        with TemporaryDirectory() as folder:
            write(str(job), Path(folder) / job, "installed")
            yield Path(folder) / job
    else:
        raise JobError(
            f"there is no job {str(job)!r}: no such folder holds {META}, and no job has this name; "
            f"{nearest(job.name, JOBS)}."
        )


def configure(
    name: str,
    folder: Path,
    *,
    sites: Sequence[str],
    strategy: str | None = None,
    preset: str | None = None,
    settings: Settings,
    per_site: Mapping[str, Settings],
    code: str = "marked",
) -> None:
    """Write the folder of one of `JOBS` for some sites, with some settings.

    A strategy of None is the method's own; without a preset the settings are for the phantom on
    CPUs. For `code` see `write`.

    Raises:
        ValueError: No such job, preset, strategy, setting, site or way, or a value of another type.
    """
    if strategy is not None:
        settings = {**settings, "strategy": strategy}
    settings, per_site = with_preset(preset, settings, per_site, sites)
    with TemporaryDirectory() as temporary:
        template = Path(temporary) / name
        write(name, template, code)
        job_folder.check(template, sites=sites, settings=settings, per_site=per_site)
        job_folder.copy(template, folder, sites=sites, settings=settings, per_site=per_site)


def write_all(folder: Path) -> None:
    """Write every job's folder into `folder`, in place of what is there by that name."""
    for name in JOBS:
        shutil.rmtree(folder / name, ignore_errors=True)
        write(name, folder / name)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))

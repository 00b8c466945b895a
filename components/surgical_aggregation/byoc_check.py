"""Refusing to run other code than the job carries."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable


class CarriedCodeError(ValueError):
    """What runs here is not the code that the job carries."""


class CarriedCode(Filter):
    """Refuse to run where an installed package stands before the one that the job carries.

    FLARE puts a job's custom/ last on the path, so a package that is installed at the server or at
    a site, of whatever version, wins without a word. When the run starts, every file of the
    packages as imported is compared with the job's.

    Runs on the client, on the data of every task, ahead of the executor: where the code differs,
    each task is answered with an error, and the run goes on while `min_clients` can be reached
    without the site. On the server, as a component: the run ends. The reason is in the log there.

    Args:
        packages: Names of the packages in the job's custom/.
        ends_run: Whether a difference ends the whole run, as it must at the server. Default False.
    """

    def __init__(self, packages: Sequence[str], ends_run: bool = False):
        super().__init__()
        self.packages = packages
        self.ends_run = ends_run
        self._reason = ""

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Compare when the run starts."""
        if event_type != EventType.START_RUN:
            return
        workspace = fl_ctx.get_engine().get_workspace()
        custom = Path(workspace.get_app_custom_dir(fl_ctx.get_job_id()))
        try:
            for package in self.packages:
                check(package, custom / package)
        except CarriedCodeError as error:
            self._reason = str(error)
            self.log_error(
                fl_ctx, f"this place cannot take part in the run: {error}", fire_event=False
            )
            if self.ends_run:
                self.system_panic(self._reason, fl_ctx)
            return
        self.log_info(fl_ctx, f"runs the job's own {', '.join(self.packages)}")

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Pass the task's data, or refuse the task.

        Raises:
            CarriedCodeError: Other code would carry it out.
        """
        if self._reason:
            raise CarriedCodeError(self._reason)
        return shareable


def check(package: str, carried: Path) -> None:
    """Make sure that a package, as imported, is the carried one file by file.

    Args:
        package: Its name.
        carried: Its folder in the job.

    Raises:
        CarriedCodeError: It differs, or the job carries none.
    """
    ours = code_files(carried)
    if not ours:
        raise CarriedCodeError(f"the job carries no package {package!r}; write it anew.")
    imported = Path(str(import_module(package).__file__)).parent
    theirs = code_files(imported)
    different = [
        name
        for name in sorted(ours.keys() | theirs.keys())
        if name not in ours
        or name not in theirs
        or ours[name].read_bytes() != theirs[name].read_bytes()
    ]
    if different:
        raise CarriedCodeError(
            f"the job carries package {package!r}, but another copy is installed here and comes "
            f"first; {len(different)} files differ, {different[0]!r} among them. Remove the "
            "installed copy, install the job's version, or submit the job without code."
        )


def code_files(folder: Path) -> dict[str, Path]:
    """Files of a package by their path in it: all but compiled and hidden ones.

    FLARE hides its signatures in every folder of a job.
    """
    files = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        name.as_posix(): path
        for name, path in files.items()
        if not any(part.startswith((".", "__pycache__")) for part in name.parts)
    }

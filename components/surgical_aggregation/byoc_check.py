"""Refuses to run other code than the job brings (BYOC)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable


class ByocError(ValueError):
    """What runs here is not the code that the job brings."""


class ByocCheck(Filter):
    """Refuse to run where an installed package hides the one that the job brings.

    FLARE puts a job's custom/ last on the path, so an installed package of any version silently
    wins. When the run starts, every file of the packages as imported is compared with the job's.

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
        except Exception as error:  # FLARE would log one, and run the code unchecked
            self._reason = str(error) or repr(error)
            self.log_error(fl_ctx, f"cannot take part in the run: {error}", fire_event=False)
            if self.ends_run:
                self.system_panic(self._reason, fl_ctx)
            return
        self.log_info(fl_ctx, f"runs the job's own {', '.join(self.packages)}")

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Pass the task's data, or refuse the task with a `ByocError`."""
        if self._reason:
            raise ByocError(self._reason)
        return shareable


def check(package: str, shipped: Path) -> None:
    """Compare a package, as imported, file by file with its folder in the job.

    Raises:
        ByocError: It differs, or the job brings none.
    """
    ours = code_files(shipped)
    if not ours:
        raise ByocError(f"the job brings no package {package!r}; write it anew.")
    theirs = code_files(Path(str(import_module(package).__file__)).parent)
    different = sorted(
        ours.keys() ^ theirs.keys()
        | {n for n in ours.keys() & theirs.keys() if ours[n].read_bytes() != theirs[n].read_bytes()}
    )
    if different:
        raise ByocError(
            f"the job brings package {package!r}, but another copy is installed here and comes "
            f"first; {len(different)} files differ, {different[0]!r} among them. Remove the "
            "installed copy, install the job's version, or submit the job without code."
        )


def code_files(folder: Path) -> dict[str, Path]:
    """Files of a package by their path in it, without compiled and hidden ones.

    FLARE hides its signatures in every folder of a job.
    """
    files = {path.relative_to(folder): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        name.as_posix(): path
        for name, path in files.items()
        if not any(part.startswith((".", "__pycache__")) for part in name.parts)
    }

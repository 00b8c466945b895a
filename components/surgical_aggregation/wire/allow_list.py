"""What a server's or site's kit lets a job without code name: component classes, never packages."""

import json
from pathlib import Path

from nvflare.apis.fl_context import FLContext


class AllowListError(ValueError):
    """A kit's allow-list has more than component classes."""


def check_allow_list(fl_ctx: FLContext) -> None:
    """Refuse to run in a kit that allows a whole package, as kits of earlier versions do.

    FLARE calls whatever an allowed path names, functions too, with the arguments that a job gives.

    Raises:
        AllowListError: `class_allow_list` of local/resources.json has "*", a package, a module or a
            function, by their names; or FLARE is told to warn alone.
    """
    file = Path(fl_ctx.get_engine().get_workspace().get_root_dir()) / "local" / "resources.json"
    if not file.is_file():  # FLARE's own list has classes alone
        return
    resources = json.loads(file.read_text(encoding="utf-8"))
    allowed = resources.get("class_allow_list", [])
    whole = [entry for entry in allowed if not entry.rpartition(".")[2][:1].isupper()]
    if resources.get("class_list_enforcement_mode", "enforce") != "enforce":
        whole.append("all that is not")
    if whole:
        raise AllowListError(
            f"{file}: with {', '.join(whole)} on 'class_allow_list', any job could run any command "
            "here. Have component classes there, one by one: write the kit's files anew with "
            "`surgagg deploy kit ... --force`, its other options as before, and start it again."
        )

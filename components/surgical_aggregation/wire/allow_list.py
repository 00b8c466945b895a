"""Check that a kit's allow-list has only component classes."""

import json
from pathlib import Path

from nvflare.apis.fl_context import FLContext


class AllowListError(ValueError):
    """A kit's allow-list has more than component classes."""


def check_allow_list(fl_ctx: FLContext) -> None:
    """Refuse to run in a kit that allows more than component classes.

    FLARE calls whatever an allowed path names, functions included, with arguments from the job.

    Raises:
        AllowListError: `class_allow_list` of local/resources.json, or else of its default, has "*",
            a package, a module or a function (no capital in its last part), or
            `class_list_enforcement_mode` is not "enforce".
    """
    local = Path(fl_ctx.get_engine().get_workspace().get_root_dir()) / "local"
    read = (local / "resources.json", local / "resources.json.default")  # by FLARE, the first
    if (file := next(filter(Path.is_file, read), None)) is None:
        return
    resources = json.loads(file.read_text(encoding="utf-8"))
    allowed = resources.get("class_allow_list", [])
    whole = [entry for entry in allowed if not entry.rpartition(".")[2][:1].isupper()]
    if resources.get("class_list_enforcement_mode", "enforce") != "enforce":
        whole.append("everything that is not")
    if whole:
        raise AllowListError(
            f"{file}: with {', '.join(whole)} on 'class_allow_list', any job could run any command "
            "here. List each component class instead, set 'class_list_enforcement_mode' to "
            "'enforce', and restart the service."
        )

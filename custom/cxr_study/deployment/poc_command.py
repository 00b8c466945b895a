"""FLARE's command `nvflare poc`, which finds one folder alone and leaves the user's as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cxr_study.common.cache import cache_dir
from cxr_study.deployment.poc_project import PocError

_WORKSPACE = "system"
_USERS_OWN = ("NVFLARE_STARTUP_KIT_DIR", "NVFL_WORKSPACE", "NVFLARE_HOME")
"""Variables by which FLARE would find something else than the POC's folder."""


def prepare(root: Path, project: Path) -> None:
    """Make certificates and startup kits.

    Args:
        root: The POC's folder, absolute.
        project: FLARE's project file.

    Raises:
        PocError: FLARE refuses, or does not end.
    """
    for name in ("home", "tmp"):
        (root / name).mkdir()
    _run(root, "prepare", "-i", str(project), timeout=60.0)


def stop(root: Path) -> None:
    """Abort the jobs of a POC's server, and shut its services down.

    Raises:
        PocError: FLARE fails, or does not end.
    """
    _run(root, "stop", timeout=20.0)


def kits(root: Path, project: str) -> Path:
    """Folder of the startup kits of a project's POC."""
    return root / _WORKSPACE / project / "prod_00"


def environment(root: Path) -> dict[str, str]:
    """Variables of all processes of a POC: this process's, but FLARE finds that folder alone."""
    own = {
        "HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),  # FLARE leaves files there
        "NVFLARE_POC_WORKSPACE": str(root / _WORKSPACE),
        "SURGAGG_CACHE": str(cache_dir().absolute()),  # by default in the user's home
        # The kits' scripts say python3.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }
    users = {name: value for name, value in os.environ.items() if name not in _USERS_OWN}
    return {**users, **own}


def _run(root: Path, *command: str, timeout: float) -> None:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nvflare.cli", "poc", *command],
            cwd=root,
            env=environment(root),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        raise PocError(f"nvflare poc {command[0]} does not end in {timeout:.0f} s.") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise PocError(f"nvflare poc {command[0]} failed: {said}")

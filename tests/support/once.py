"""What the workers of a test session share."""

import os
import shutil

from filelock import FileLock


def once(tmp_path_factory, name, make):
    """A folder that is filled once, by whichever worker asks first: it calls `make` with it."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    folder, done = shared / name, shared / f"{name}.done"
    with FileLock(shared / f"{name}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder

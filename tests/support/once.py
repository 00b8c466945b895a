"""What tests of several files need is made once, whichever worker asks first."""

import os

from filelock import FileLock


def once(tmp_path_factory, name, make):
    """Make a folder of the whole test run, all workers', unless it is there.

    Args:
        tmp_path_factory: pytest's.
        name: Of the folder.
        make: make(folder) makes and fills it; where it fails, the next to ask tries again.

    Returns:
        The folder.
    """
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name
    done = folder.with_name(f"{name}.done")
    with FileLock(f"{folder}.lock"):
        if not done.exists():
            make(folder)
            done.touch()
    return folder

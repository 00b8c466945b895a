"""Puts the test support modules on the path, here and in the processes that tests start."""

import os
import sys
from contextlib import suppress
from pathlib import Path

with suppress(ImportError):
    import tenseal  # noqa: F401  # before TensorFlow: after it, the process would crash

SUPPORT = str(Path(__file__).parent / "support")
sys.path.insert(0, SUPPORT)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SUPPORT, os.environ.get("PYTHONPATH")]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

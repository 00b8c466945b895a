"""Set up TensorFlow for a site's process: quiet, a fixed number of threads, reproducible."""

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.extras import missing
from surgical_aggregation.wire.headers import SIMULATED_JOB

OPTIONAL = ("matplotlib", "pandas", "scipy", "sklearn")
"""Packages that TensorFlow and Keras import if installed, but do not need."""


CPU_FACTS = Path("/proc/cpuinfo")
"""Linux's description of its CPUs; missing on other systems."""

_BFLOAT16 = re.compile(r"^flags\s*:.*\b(?:avx512_bf16|amx_bf16)\b", re.MULTILINE)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_per_site(fl_ctx: FLContext) -> int:
    """Number of threads for one site: all cores, divided among simulated sites.

    TensorFlow processes that each use all cores train half as fast as processes that share them.
    """
    if fl_ctx.get_job_id() != SIMULATED_JOB:
        return cores()
    deploy_map = (fl_ctx.get_prop(FLContextKey.JOB_META) or {}).get("deploy_map", {})
    sites = {site for names in deploy_map.values() for site in names} - {"server"}
    return shared_cores(len(sites))


def shared_cores(sites: int) -> int:
    """Cores per site for so many sites on this machine; at least one."""
    return max(1, cores() // max(1, sites))


def half_precision() -> str | None:
    """Keras's dtype policy of mixed precision for this machine.

    Returns:
        "mixed_float16" if TensorFlow finds a GPU, "mixed_bfloat16" if the CPU supports bfloat16;
        None otherwise, when mixed precision would only cost time.
    """
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        return "mixed_float16"
    known = CPU_FACTS.is_file() and _BFLOAT16.search(CPU_FACTS.read_text(encoding="utf-8"))
    return "mixed_bfloat16" if known else None


def configure(threads: int, seed: int, mixed_precision: bool = False) -> bool:
    """Set up TensorFlow; must run before the process's first TensorFlow operation.

    Operations run one at a time; on one CPU, equal seeds give equal bits. NumPy's linear algebra
    gets as many threads as TensorFlow, so that sites on one machine do not compete.

    Args:
        threads: Number of CPU threads.
        seed: Seed of Python, NumPy and TensorFlow.
        mixed_precision: Whether to use mixed precision if the machine benefits, see
            `half_precision`. Default False.

    Returns:
        Whether models compute in mixed precision from now on.
    """
    import_quietly()
    import keras
    import tensorflow as tf
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)  # sites may share one GPU
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(seed)
    policy = half_precision() if mixed_precision else None
    keras.config.set_dtype_policy(policy or "float32")
    return policy is not None


def import_quietly() -> None:
    """Import TensorFlow and Keras without their start-up messages.

    Raises:
        ModuleNotFoundError: One is not installed; the message names the extra that has it.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        with quietly(), _without(OPTIONAL):
            import keras  # noqa: F401
            import tensorflow as tf

            tf.config.list_physical_devices("GPU")  # logs its search for devices
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(missing(error) or str(error), name=error.name) from error
    tf.get_logger().setLevel("ERROR")


@contextmanager
def _without(packages: Iterable[str]) -> Iterator[None]:
    """Hide packages that are not loaded yet from imports inside the context.

    Keras imports them for plots, scikit-learn wrappers and tables, which takes two thirds of
    TensorFlow's import time. They can be imported normally afterwards.
    """
    hidden = [name for name in packages if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # makes its import fail
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress TensorFlow's log lines inside the context, whatever its settings.

    Redirects the file descriptor, since TensorFlow writes from C++. Other output to standard error
    is written when the context ends.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        os.dup2(output.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
            output.seek(0)
            sys.stderr.writelines(line for line in output if not _BANNER.match(line))


_BANNER = re.compile(
    r"[IWE]\d{4} |WARNING: All log messages before absl|To enable the following instructions"
)

"""Work that processes share."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from joblib import Parallel, delayed

from cxr_study.common.progress import Report

T = TypeVar("T")


def shared_out(
    work: Callable[..., T], jobs: Sequence[tuple[Any, ...]], *, processes: int, report: Report
) -> list[T]:
    """Do all jobs, as many at a time as there are processes; what came out, in the jobs' order.

    Args:
        work: A function of a module, called with the values of each job.
        jobs: What can be pickled, and so can what comes out.
        processes: How many; 1: this one.
        report: Called after each job.
    """
    found = []
    for each in Parallel(n_jobs=processes, return_as="generator")(delayed(work)(*j) for j in jobs):
        found.append(each)
        report(len(found), len(jobs))
    return found

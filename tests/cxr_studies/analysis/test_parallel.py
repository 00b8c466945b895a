import os

import pytest

from cxr_studies.analysis.parallel import shared_out


@pytest.mark.parametrize("processes", [1, 2])
def test_what_comes_out_is_in_the_order_of_the_jobs_and_each_is_reported(processes):
    reported = []

    def do(work, jobs):
        report = lambda *done: reported.append(done)  # noqa: E731
        return shared_out(work, jobs, processes=processes, report=report)

    assert do(pow, [(2, 3), (3, 2), (5, 1)]) == [8, 9, 5]
    assert reported == [(1, 3), (2, 3), (3, 3)]
    assert (set(do(os.getpid, [()] * 2)) == {os.getpid()}) == (processes == 1)

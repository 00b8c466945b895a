import os

import pytest

from cxr_study.common.parallel import shared_out


@pytest.mark.parametrize("processes", [1, 2])
def test_what_comes_out_is_in_the_order_of_the_jobs_and_each_is_reported(processes):
    reported = []
    found = shared_out(
        pow,
        [(2, 3), (3, 2), (5, 1)],
        processes=processes,
        report=lambda done, total: reported.append((done, total)),
    )
    assert found == [8, 9, 5]
    assert reported == [(1, 3), (2, 3), (3, 3)]


def test_one_process_is_this_one_and_more_are_others():
    def where(processes):
        jobs = [()] * 2
        return shared_out(os.getpid, jobs, processes=processes, report=lambda done, total: None)

    assert set(where(1)) == {os.getpid()}
    assert os.getpid() not in where(2)

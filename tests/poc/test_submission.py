"""One job, submitted through the admin console, by FLARE's command and in a session of its API."""

import pytest

pytestmark = [pytest.mark.poc, pytest.mark.keras]

WAYS = ["console", "command", "session"]


@pytest.mark.parametrize("way", WAYS)
def test_a_job_runs_to_its_end_whichever_way_it_is_submitted(results, way):
    assert results[way].status == "FINISHED:COMPLETED"
    assert results[way].meta["submitter_name"] == "lead@university.org"


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("model", ["best", "last"])
def test_the_model_is_the_same_to_the_last_bit(results, model, way):
    ours, theirs = (getattr(results[which], model).variables for which in (WAYS[0], way))
    assert list(ours) == list(theirs)
    for name, value in ours.items():
        assert value.tobytes() == theirs[name].tobytes(), name

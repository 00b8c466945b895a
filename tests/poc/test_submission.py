"""Jobs, submitted through the admin console and by FLARE's command."""

import pytest

SUBMITTERS = {
    "console": "admin@network.org",
    "command": "lead@university.org",
}


@pytest.mark.parametrize(("way", "submitter"), SUBMITTERS.items())
def test_a_job_runs_to_its_end_whichever_way_it_is_submitted(results, way, submitter):
    assert results[way].status == "FINISHED:COMPLETED"
    assert results[way].meta["submitter_name"] == submitter

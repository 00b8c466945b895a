import pytest

from flare import Engine, context
from surgical_aggregation.site.site_state import site_folder
from surgical_aggregation.wire.job_id import JobIdError, checked


@pytest.mark.parametrize("job", ["a03b9a66-2687-4d4c-a55c-390235f32b97", "simulate_job"])
def test_flares_own_pass(job):
    assert checked(job) == job


@pytest.mark.parametrize(
    "job", ["../../x", "..", ".", "", "a/b", "a\\b", "a\n", "a b", "é", 3, None]
)
def test_what_leads_elsewhere_is_refused(job, tmp_path):
    with pytest.raises(JobIdError, match=r"letters, digits, '-' and '_' alone; got"):
        checked(job)
    with pytest.raises(JobIdError):
        site_folder(context(engine=Engine(tmp_path)), job)

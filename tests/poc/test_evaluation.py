"""An evaluation of an earlier job's best model, in a network whose places have policies."""

import pytest

import deployed
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.federated_evaluation import read

pytestmark = [pytest.mark.poc, pytest.mark.keras]


@pytest.fixture(scope="module")
def evaluated(network, job, results):
    """What an evaluation of installed code left that the lead submitted."""
    folder = job("installed", name="evaluation", model_of=results["session"].job_id)
    with FlareSession(network.lead) as session:
        job_id = session.submit(folder)
        return deployed.downloaded(session, network, job_id, deployed.wait(session, job_id))


def test_it_measures_what_the_training_job_did_bit_for_bit(evaluated, results):
    assert evaluated.status == "FINISHED:COMPLETED"
    assert read(evaluated.server) == read(results["session"].server)


def test_a_site_tells_no_more_than_its_policy_lets_out(evaluated):
    told = {}
    for row in read(evaluated.server):
        told.setdefault(row.site, {})[row.class_name] = row.positives is not None
    assert told == {
        "nih": dict.fromkeys(["Edema", "Nodule/Mass", "Pleural Effusion"], True),
        "chexpert": dict.fromkeys(["Edema", "Fracture"], False),
        "mercy": {"Fracture": False},
    }

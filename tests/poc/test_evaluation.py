"""An evaluation of an earlier job's best model, in a network whose places have policies.

The job was trained by installed code; the evaluation carries its own.
"""

import pytest

from cxr_study.reports.run.cross_site_results import read


@pytest.fixture(scope="module")
def evaluated(results):
    return results["console"]


def test_it_measures_what_the_training_job_did_bit_for_bit(evaluated, results):
    assert evaluated.status == "FINISHED:COMPLETED"
    assert read(evaluated.server) == read(results["command"].server)


def test_a_site_tells_no_more_than_its_policy_lets_out(evaluated):
    told = {}
    for row in read(evaluated.server):
        told.setdefault(row.site, {})[row.class_name] = row.positives is not None
    assert told == {
        "nih": dict.fromkeys(["Edema", "Nodule/Mass", "Pleural Effusion"], True),
        "chexpert": dict.fromkeys(["Edema", "Fracture"], False),
        "mercy": {"Fracture": False},
    }

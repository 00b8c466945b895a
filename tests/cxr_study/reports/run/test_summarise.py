"""What is said of a run beside its figures."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cxr_phantom.demo_data import PRETRAINED_BODY
from cxr_study.evaluation.scores import SiteEvaluation
from cxr_study.evaluation.summary_json import SHARED_PATIENTS
from cxr_study.reports.run import summarise
from cxr_study.reports.run.summarise import warnings_of
from cxr_study.runs.finished_run import FinishedRun
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load
from surgical_aggregation.wire import variables as wire

RUN = FinishedRun(Path("job"), (), None)


def evaluation(site, *unvalidated, labels=None):
    return SiteEvaluation(site, None, (), (), unvalidated=unvalidated, labels=labels)


def warned(best=None, evaluations=(), run=RUN, on_phantom=False, **changes):
    best = Checkpoint({}) if best is None else best
    return list(warnings_of(run, best, evaluations, on_phantom=on_phantom, **changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"evaluations": [evaluation("nih")]}, None),
        ({"without_mixed_precision": True}, "the sites computed in float32"),
        (
            {"evaluations": [evaluation("nih", "Hernia"), evaluation("b")]},
            "nih: Hernia. The choice of the best",
        ),
        (
            {"look_alikes": ["a (n) and b (s): the same words"]},
            "a (n) and b (s): the same words. Ask",
        ),
        (
            {"run": replace(RUN, other_splits=("nih",))},
            "nih: the split is not the one of the training",
        ),
        ({"run": replace(RUN, breaks=("the server crashed.",))}, "The server crashed."),
        (
            {"run": replace(RUN, unfinished=("as published", "nih alone"))},
            "ended: as published and nih alone.",
        ),
    ],
)
def test_each_has_its_cause_and_a_fine_run_has_none(changes, said):
    found = [warning.text for warning in warned(**changes)]
    assert len(found) == (said is not None) and (said or "") in "".join(found)


def test_patients_at_two_sites_do(monkeypatch):
    monkeypatch.setattr(summarise, "check_disjoint", lambda sites: [f"{sites} share 3 ids"])
    (shared,) = warned(evaluations=[evaluation("a", labels="A"), evaluation("b")])
    assert (shared.heading, shared.text) == (SHARED_PATIENTS, "['A'] share 3 ids.")


def test_a_class_that_no_site_could_teach_does():
    variables = wire.join({}, {"Mass": (np.float32([1]), np.float32([2]))})
    trained = {"sites": ["a"], "lacking": {"a": "negative"}}
    best = Checkpoint(variables, {"classes": {"Mass": trained, "not in the model": trained}})
    (never,) = warned(best)
    assert never.heading == "Never learned."
    assert never.text.startswith("Mass (no site had a negative image).")


@pytest.mark.parametrize("on_phantom", [True, False])
def test_real_images_that_started_from_drawings_do(on_phantom):
    start = load(PRETRAINED_BODY).manifest["initial_body_sha256"]
    best = Checkpoint({}, {"initial_body_sha256": start})
    found = [each.heading for each in warned(best, on_phantom=on_phantom)]
    assert found == ([] if on_phantom else ["Started from drawings."])

"""What is said of a run beside its figures."""

from dataclasses import replace
from types import SimpleNamespace

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

JOB = SimpleNamespace(at_server=SimpleNamespace(mixed_precision=False))
RUN = FinishedRun(JOB, (), None, {}, {})


def evaluation(site, *unvalidated, labels=None):
    return SiteEvaluation(site, None, (), (), unvalidated=unvalidated, labels=labels)


def warned(best=None, evaluations=(), run=RUN, data="real"):
    return list(warnings_of(run, best or Checkpoint({}), evaluations, data))


@pytest.mark.parametrize(("changes", "said"), [
    ({"evaluations": [evaluation("nih")]}, None),
    (
        {"evaluations": [evaluation("nih", "Hernia"), evaluation("b")]},
        "nih: Hernia. The choice of the best",
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
])  # fmt: skip
def test_each_has_its_cause_and_a_fine_run_has_none(changes, said):
    found = [warning.text for warning in warned(**changes)]
    assert len(found) == (said is not None) and (said or "") in "".join(found)


def test_so_have_look_alikes_and_a_precision_that_this_machine_lacks(monkeypatch):
    monkeypatch.setattr(JOB.at_server, "mixed_precision", True)
    for half in (True, False):
        monkeypatch.setattr(summarise.tensorflow_setup, "half_precision", lambda h=half: h)
        found = {
            data: [each.heading for each in warned(data=data)] for data in ("real", "elsewhere")
        }
        assert found == {"real": [] if half else ["No mixed precision here."], "elsewhere": []}
    monkeypatch.setattr(summarise.job_results, "look_alikes", lambda: ["a and b: the same words"])
    told = warned(data="elsewhere")[0].text
    assert told.startswith("a and b: the same words. Ask")


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


@pytest.mark.parametrize("data", ["phantom", "real"])
def test_real_images_that_started_from_drawings_do(data):
    start = load(PRETRAINED_BODY).manifest["initial_body_sha256"]
    best = Checkpoint({}, {"initial_body_sha256": start})
    found = [each.heading for each in warned(best, data=data)]
    assert found == ([] if data == "phantom" else ["Started from drawings."])

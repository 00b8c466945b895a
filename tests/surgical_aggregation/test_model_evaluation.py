import pytest
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import make_reply
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.workflows.global_model_eval import GlobalModelEval

from flare import context
from surgical_aggregation.model_evaluation import ModelEvaluation

RESULTS = {
    "north": DXO(DataKind.METRICS, data={"auroc": 0.5}).to_shareable(),
    "south": make_reply(ReturnCode.EXECUTION_EXCEPTION),
}


@pytest.fixture
def ended(monkeypatch, panics):
    """Let an evaluation have the results of two sites, one of them an error; why it failed."""

    def run(min_clients, aborted=False):
        def control_flow(self, abort_signal, fl_ctx):
            for site, result in RESULTS.items():
                of_site = context(site)
                of_site.set_prop(AppConstants.VALIDATION_RESULT, result, private=True, sticky=False)
                self.handle_event(AppEventType.VALIDATION_RESULT_RECEIVED, of_site)

        monkeypatch.setattr(GlobalModelEval, "control_flow", control_flow)
        signal = Signal()
        if aborted:
            signal.trigger(True)
        ModelEvaluation(min_clients=min_clients).control_flow(signal, context())
        return panics

    return run


def test_enough_sites_that_measured_the_model_are_a_good_end(ended):
    assert ended(min_clients=1) == []


def test_too_few_end_the_run_with_those_that_did(ended):
    (reason,) = ended(min_clients=2)
    assert reason.startswith("the model must be measured at 2 sites; it was at north.")


def test_an_aborted_evaluation_has_its_reason_already(ended):
    assert ended(min_clients=2, aborted=True) == []

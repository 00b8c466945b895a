"""Feature statistics of the sites' tests go into the best model's manifest."""

import numpy as np
import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.server.models.best_model_features import BestModelFeatures
from surgical_aggregation.server.models.model_files import BEST_FILE, checkpoint_folders
from surgical_aggregation.wire.headers import RESULT

SAID = {"mean": [1.0], "variance": [2.0], "limit": 3.0, "images": 60}


class BestModelTest:
    """The test of a best model, workflow by workflow."""

    def __init__(self, folder):
        self.component = BestModelFeatures()
        self.engine = Engine(folder)
        self.files = [each / BEST_FILE for each in checkpoint_folders(self.context())]

    def context(self, site=None):
        return context(site, engine=self.engine)

    def fire(self, event, workflow="test_best", site=None, features=None):
        fl_ctx = self.context(site)
        fl_ctx.set_prop(FLContextKey.WORKFLOW, workflow, private=True, sticky=False)
        result = SiteResult({}, {}, features=features)
        fl_ctx.set_prop(RESULT, result, private=True, sticky=False)
        self.component.handle_event(event, fl_ctx)


@pytest.fixture
def run(tmp_path):
    return BestModelTest(tmp_path)


def test_of_the_sites_that_sent_some_and_in_both_copies_of_the_model(run):
    for file in run.files:
        save(Checkpoint({"a": np.float32([1])}, {"round": 4}), file)
    received = AppEventType.VALIDATION_RESULT_RECEIVED
    run.fire(received, site="south", features=SAID)
    run.fire(received, site="north", features={**SAID, "limit": 4.0})
    run.fire(received, site="silent")
    run.fire(received, workflow="validate_final", site="early", features=SAID)
    run.fire(EventType.END_WORKFLOW, workflow="validate_final")
    assert "features" not in load(run.files[0]).manifest
    run.fire(EventType.END_WORKFLOW)
    for file in run.files:
        best = load(file)
        assert best.manifest["features"] == {"north": {**SAID, "limit": 4.0}, "south": SAID}
        assert best.manifest["round"] == 4 and best.variables["a"] == 1


def test_without_a_best_model_the_log_says_so(run, caplog):
    run.fire(AppEventType.VALIDATION_RESULT_RECEIVED, site="south", features=SAID)
    run.fire(EventType.END_WORKFLOW)
    assert "the best model has no statistics of features" in caplog.text

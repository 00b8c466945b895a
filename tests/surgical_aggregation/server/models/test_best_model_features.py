"""Feature statistics of the sites' tests go into the best model's manifest."""

import numpy as np
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.server.models.best_model_features import BestModelFeatures
from surgical_aggregation.server.models.model_files import BEST_FILE, checkpoint_folders
from surgical_aggregation.wire.headers import RESULT

STATISTICS = {"mean": [1.0], "variance": [2.0], "limit": 3.0, "images": 60}


def test_of_the_sites_that_sent_some_and_in_both_copies_of_the_model(tmp_path, caplog):
    component, engine = BestModelFeatures(), Engine(tmp_path)

    def fire(event, workflow="test_best", site=None, features=None):
        result = SiteResult({}, {}, features=features)
        props = {FLContextKey.WORKFLOW: workflow, RESULT: result}
        component.handle_event(event, context(site, engine=engine, props=props))

    received = AppEventType.VALIDATION_RESULT_RECEIVED
    fire(received, site="south", features=STATISTICS)
    fire(EventType.END_WORKFLOW)
    assert "the best model has no statistics of features" in caplog.text  # for there is none
    files = [each / BEST_FILE for each in checkpoint_folders(context(engine=engine))]
    for file in files:
        save(Checkpoint({"a": np.float32([1])}, {"round": 4}), file)
    fire(received, site="north", features={**STATISTICS, "limit": 4.0})
    fire(received, site="silent")
    fire(received, workflow="validate_final", site="early", features=STATISTICS)
    fire(EventType.END_WORKFLOW, workflow="validate_final")
    assert "features" not in load(files[0]).manifest
    fire(EventType.END_WORKFLOW)
    expected = {"north": {**STATISTICS, "limit": 4.0}, "south": STATISTICS}
    for best in map(load, files):
        assert best.manifest["features"] == expected
        assert best.manifest["round"] == 4 and best.variables["a"] == 1

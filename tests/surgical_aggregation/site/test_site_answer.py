from contextlib import nullcontext
from copy import copy
from types import SimpleNamespace

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_constant import FilterKey, FLContextKey
from nvflare.app_common.filters.dxo_blocker import DXOBlocker
from nvflare.app_common.filters.exclude_vars import ExcludeVars
from nvflare.app_common.filters.percentile_privacy import PercentilePrivacy
from nvflare.app_common.filters.svt_privacy import SVTPrivacy
from nvflare.private.privacy_manager import Scope

from flare import Engine, context
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.site_answer import check, check_filters
from surgical_aggregation.wire import headers


@pytest.mark.parametrize("of", ["site", "train", "refit"])
@pytest.mark.parametrize(("each", "send", "needed"), [
    (PercentilePrivacy(), "weights", "differences"), (SVTPrivacy(), "weights", "differences"),
    (PercentilePrivacy(), "differences", None), (DXOBlocker(["METRICS"]), "weights", None),
    (ExcludeVars("bn", ["WEIGHT_DIFF"]), "weights", "differences"),
    (ExcludeVars("b", ["WEIGHTS"]), "differences", "weights"), (ExcludeVars("b"), "weights", None),
])  # fmt: skip
def test_a_filter_that_would_let_models_pass_is_refused_by_name(each, send, needed, of):
    scope, each = Scope(), copy(each)
    if of == "site":
        scope.add_task_result_filter(each, FilterKey.OUT)
    runner = SimpleNamespace(task_result_filters={f"{of}/out": [each]})
    fl_ctx = context(props={FLContextKey.SCOPE_OBJECT: scope, FLContextKey.RUNNER: runner})
    whose = "this site, in local/privacy.json," if of == "site" else "the job"
    need = f"the filter {type(each).__name__} of {whose} needs {needed}; it would receive {send}"
    with pytest.raises(SiteError, match=need) if needed else nullcontext():
        check_filters(send, fl_ctx)


@pytest.mark.parametrize(("trains", "pixels", "refused"), [
    (True, 128, False), (False, 64, False), (False, 128, True),
], ids=["training", "equal", "another size"])  # fmt: skip
def test_a_model_is_measured_at_its_own_size_alone(tmp_path, trains, pixels, refused):
    (tmp_path / "server").mkdir()
    here = SimpleNamespace(network_facts={"image_size": 64})
    body = {"conv/kernel": np.zeros(2, np.float32)}
    training = SimpleNamespace(site=here, head=(), variables=lambda: body)
    asked = {headers.BODY_SHAPES: {"conv/kernel": [2]}, headers.NETWORK: {"image_size": pixels}}
    request = DXO(DataKind.APP_DEFINED, data={**asked, headers.TRAINS: trains}).to_shareable()
    fl_ctx = context("a", engine=Engine(tmp_path))
    needed = "with other settings; image_size is 128 there and 64 here"
    with pytest.raises(SiteError, match=needed) if refused else nullcontext():
        check(request, training, fl_ctx)

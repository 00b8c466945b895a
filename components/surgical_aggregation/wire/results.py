"""Read a site's result into a `SiteResult`."""

from nvflare.apis.dxo import DataKind, MetaKey, from_shareable
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import FEATURES, LACKING, POSITIVES, RESULT


def trained(shareable: Shareable) -> SiteResult:
    """Read a training result: a model with its counts and metrics.

    Raises:
        WireError: The data are not a body with labelled columns.
    """
    dxo = wire.result(shareable)
    meta = dxo.get_meta_prop
    return SiteResult(
        *wire.split(dxo.data),
        meta(MetaKey.NUM_STEPS_CURRENT_ROUND),
        meta(POSITIVES),
        meta(LACKING, {}),
        meta(MetaKey.INITIAL_METRICS, {}),
        filters=tuple(map(str, dxo.get_filter_history() or ())),
        differences=dxo.data_kind == DataKind.WEIGHT_DIFF,
    )


def current(fl_ctx: FLContext) -> SiteResult:
    """The result being processed: as read by `CollectingController`, else read from the context."""
    result: SiteResult | None = fl_ctx.get_prop(RESULT)
    if result is not None:
        return result
    if (evaluated := fl_ctx.get_prop(AppConstants.VALIDATION_RESULT)) is not None:
        return measured(evaluated)
    return trained(fl_ctx.get_prop(AppConstants.TRAINING_RESULT))


def of_model(model: FLModel) -> SiteResult:
    """Read a training result from FLARE's FLModel; raises `WireError`."""
    return trained(FLModelUtils.to_shareable(model))


def measured(shareable: Shareable) -> SiteResult:
    """Read an evaluation result.

    Raises:
        WireError: It carries no metrics.
    """
    dxo = from_shareable(shareable)
    if dxo.data_kind != DataKind.METRICS:
        raise wire.WireError(f"it must carry metrics; got {str(dxo.data_kind)!r}")
    return SiteResult({}, {}, metrics=dxo.data, features=dxo.get_meta_prop(FEATURES))

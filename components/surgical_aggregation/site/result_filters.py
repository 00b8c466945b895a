"""Whether the filters that a site's results pass can do their work on what the site sends."""

from __future__ import annotations

from nvflare.apis.dxo import DataKind
from nvflare.apis.dxo_filter import DXOFilter
from nvflare.apis.filter import Filter, FilterContextKey, FilterSource
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.filters.percentile_privacy import PercentilePrivacy
from nvflare.app_common.filters.svt_privacy import SVTPrivacy

from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.wire import flare_internals

_KINDS = {"weights": DataKind.WEIGHTS, "differences": DataKind.WEIGHT_DIFF}


def check_filters(send: str, fl_ctx: FLContext) -> None:
    """Refuse a filter that would let this site's models pass as they are, without a word.

    PercentilePrivacy and SVTPrivacy limit changes: they take whole weights for changes, which no
    limit fits. Other filters of FLARE's name the kinds of model that they act on. What a filter of
    another make needs is not known.

    Args:
        send: "weights" or "differences".
        fl_ctx: Context of the run; its filters are those of the site's own scope, and the job's.

    Raises:
        SiteError: A filter acts on differences alone, or on whole weights alone, and would get the
            other.
    """
    (needed,) = _KINDS.keys() - {send}
    for task in ("train", "refit"):
        for each in flare_internals.result_filters(task, fl_ctx):
            if not _acts_on(_KINDS[send], each):
                own = each.get_prop(FilterContextKey.SOURCE) == FilterSource.SITE
                raise SiteError(
                    f"the filter {type(each).__name__} of "
                    f"{'this site, in local/privacy.json,' if own else 'the job'} needs {needed}; "
                    f"it would get {send}, and let them pass as they are. Set the job's "
                    f'send = "{needed}", or take the filter out.'
                )


def _acts_on(kind: str, each: Filter) -> bool:
    """Whether a filter acts on a kind of model; true where it is not for models, or not known."""
    if isinstance(each, (PercentilePrivacy, SVTPrivacy)) and kind == DataKind.WEIGHTS:
        return False
    kinds = set(each.data_kinds or ()) if isinstance(each, DXOFilter) else set()
    return kind in kinds or not kinds & set(_KINDS.values())

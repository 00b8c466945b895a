"""Client-side result filter that enforces the site's policy on every result."""

from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.filter import Filter
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply

from surgical_aggregation.aggregation.averaging import Variables
from surgical_aggregation.aggregation.batch_norm_strategy import HEAD_LAYER
from surgical_aggregation.aggregation.metrics import disclosed
from surgical_aggregation.site.contract.restricted_site import find_site, withheld_classes
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.local_notes import note_error
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import FEATURES, LACKING, POSITIVES

MODELS = (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF)
UNREADABLE = (DataKind.FL_MODEL, DataKind.COLLECTION)
"""Kinds of models that the filter cannot check, so it refuses them."""


class PolicyGate(Filter):
    """Enforce the site's policy on a result, independently of the job's configuration.

    Runs on the client, on the result of every task, before the job's filters. Configure it in the
    `task_result_filters` of the scope in the site's `local/privacy.json`:

        in   the executor's result
        out  a model: unchanged, or a reply EXECUTION_RESULT_ERROR if its head has a class that the
             policy withholds; its counts are removed unless the policy shares them
             metrics: without those of withheld classes; counts and feature statistics are removed
             unless the policy shares them; without counts, metrics are rounded, so that counts
             cannot be inferred (`metrics.without_counts`)
             anything else: unchanged

    Never raises. Reasons are only in the site's notes (see `local_notes`).
    """

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Return what the policy permits of the result."""
        if shareable.get_return_code() != ReturnCode.OK:
            return shareable
        try:
            dxo = from_shareable(shareable)
        except ValueError:  # not a DXO, e.g. statistics
            return shareable
        try:
            return self._shared(dxo, fl_ctx).update_shareable(shareable)
        except Exception as error:  # what cannot be checked is not sent
            text = note_error(fl_ctx, "this site's policy withholds the result", error)
            self.log_error(fl_ctx, text, fire_event=False)  # an event would reach the admins
            return make_reply(ReturnCode.EXECUTION_RESULT_ERROR)

    def _shared(self, dxo: DXO, fl_ctx: FLContext) -> DXO:
        if dxo.data_kind in UNREADABLE:
            raise SiteError(f"a model must be of kind {MODELS}; got {dxo.data_kind!r}.")
        if dxo.data_kind not in (*MODELS, DataKind.METRICS):
            return dxo
        site = find_site(fl_ctx)
        withheld = set(withheld_classes(site))
        with_counts = site.policy.report_counts
        data, meta = dict(dxo.data), dict(dxo.meta)
        if dxo.data_kind in MODELS:
            _check_head(data, site.classes)
        else:
            data = disclosed(data, withheld, with_counts=with_counts)
        measured = meta.get(MetaKey.INITIAL_METRICS)
        if isinstance(measured, dict):
            meta[MetaKey.INITIAL_METRICS] = disclosed(measured, withheld, with_counts=with_counts)
        if isinstance(lacking := meta.get(LACKING), dict):
            meta[LACKING] = {n: what for n, what in lacking.items() if n not in withheld}
        if not with_counts:
            meta.pop(POSITIVES, None)
        if not site.policy.report_features:
            meta.pop(FEATURES, None)
        return DXO(dxo.data_kind, data=data, meta=meta)


def _check_head(variables: Variables, classes: tuple[str, ...]) -> None:
    """Refuse a head, dense or labelled, with other classes than the permitted ones."""
    dense = (f"{HEAD_LAYER}/kernel", f"{HEAD_LAYER}/bias")
    if any(variables[name].shape[-1] != len(classes) for name in dense if name in variables):
        raise SiteError(f"its head needs {len(classes)} units, one per permitted class.")
    beyond = set(wire.classes_of(variables.keys() - set(dense))) - set(classes)
    if beyond:
        raise SiteError(f"it has columns of {len(beyond)} classes that are not permitted.")

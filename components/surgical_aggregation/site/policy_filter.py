"""Client-side result filter of the site's policy: the final check of what leaves."""

from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.filter import Filter
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply

from surgical_aggregation.aggregation.averaging import Variables
from surgical_aggregation.aggregation.metrics import disclosed
from surgical_aggregation.aggregation.strategy import HEAD_LAYER
from surgical_aggregation.site.contract.restricted_site import find_site
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.local_notes import note_error
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import FEATURES, LACKING, POSITIVES

MODELS = (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF)
UNREADABLE = (DataKind.FL_MODEL, DataKind.COLLECTION)
"""Forms of a model that the filter cannot check."""


class PolicyGate(Filter):
    """Share a result only as far as the site's policy does, whatever a job's configuration says.

    Runs on the client, on the result of every task, ahead of a job's own filters; it belongs among
    the `task_result_filters` of the scope in the site's `local/privacy.json`:

        in   what the executor made
        out  a model: the same, or a reply EXECUTION_RESULT_ERROR where its head has other classes
             than `find_site` shares; counts are taken out unless the policy shares them
             metrics: without those of withheld classes, counts and features likewise; without
             counts they are rounded, so that these cannot be rebuilt (`metrics.without_counts`)
             anything else: the same

    Never raises. What is wrong is in the site's notes alone (see `local_notes`).

    Args:
        site_id: Id of the `Site` component. Default "site".
    """

    def __init__(self, site_id: str = "site"):
        super().__init__()
        self.site_id = site_id

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Pass the result as far as the policy permits."""
        if shareable.get_return_code() != ReturnCode.OK:
            return shareable
        try:
            dxo = from_shareable(shareable)
        except ValueError:  # statistics and the like
            return shareable
        try:
            return self._shared(dxo, fl_ctx).update_shareable(shareable)
        except Exception as error:  # what cannot be looked into stays
            said = note_error(fl_ctx, "this site's policy keeps the result here", error)
            self.log_error(fl_ctx, said, fire_event=False)  # an event would reach the admins
            return make_reply(ReturnCode.EXECUTION_RESULT_ERROR)

    def _shared(self, dxo: DXO, fl_ctx: FLContext) -> DXO:
        if dxo.data_kind in UNREADABLE:
            raise SiteError(f"a model must come as one of {MODELS}; got {dxo.data_kind!r}.")
        if dxo.data_kind not in (*MODELS, DataKind.METRICS):
            return dxo
        site = find_site(self.site_id, fl_ctx)
        whole = find_site(self.site_id, fl_ctx, head_stays=True)
        withheld = set(whole.classes) - set(site.classes)
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
    """Refuse a head, dense or labelled, that has other classes than the permitted ones."""
    dense = (f"{HEAD_LAYER}/kernel", f"{HEAD_LAYER}/bias")
    if any(variables[name].shape[-1] != len(classes) for name in dense if name in variables):
        raise SiteError(f"its head needs {len(classes)} units, those of the permitted classes.")
    beyond = set(wire.classes_of(variables.keys() - set(dense))) - set(classes)
    if beyond:
        raise SiteError(f"it has columns of {len(beyond)} classes that are not permitted.")

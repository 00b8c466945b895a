"""Client-side result filter: split the dense head into columns labelled by class."""

from nvflare.apis.dxo import DXO
from nvflare.apis.filter import Filter
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import ReturnCode, Shareable

from surgical_aggregation.site.contract.restricted_site import find_site
from surgical_aggregation.wire import variables as wire


class LabelHead(Filter):
    """Split a dense head into columns labelled with the site's classes.

    Runs on the client, on the result of the training task, before any privacy filter:

        in   body variables by path, head/kernel (features, classes), head/bias (classes,)
        out  body variables by path, head/<class>/kernel (features,), head/<class>/bias (1,)

    A reply that is not OK passes unchanged: it carries no model.
    """

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Replace the dense head in a training result by its labelled columns."""
        if shareable.get_return_code() != ReturnCode.OK:
            return shareable
        dxo = wire.result(shareable)
        data = wire.label(dxo.data, find_site(fl_ctx).classes)
        return DXO(dxo.data_kind, data=data, meta=dxo.meta).update_shareable(shareable)

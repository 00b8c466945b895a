"""Client-side result filter: what the strategy keeps at the site is not sent."""

from nvflare.apis.dxo import DXO
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.filters.exclude_vars import ExcludeVars

from surgical_aggregation.strategy import kept_at_site


class KeepAtSite(ExcludeVars):
    """FLARE's ExcludeVars for the variables that a strategy keeps at the site.

    Runs on the client, on the result of the training task, next to `LabelHead`:

        in   all variables by path (a personal head the executor leaves out already)
        out  the same without batch normalisation (fedbn, fedbn+) and without a personal head

    Args:
        strategy: See `strategy`; the same as the executor's and the aggregator's. Default "fedbn+".
        personal_head: The head stays as well. Default False.

    Raises:
        StrategyError: The strategy is unknown.
    """

    def __init__(self, strategy: str = "fedbn+", personal_head: bool = False):
        super().__init__(exclude_vars=kept_at_site(strategy, personal_head=personal_head))
        self.strategy = strategy
        self.personal_head = personal_head

    def process_dxo(self, dxo: DXO, shareable: Shareable, fl_ctx: FLContext) -> DXO:
        """Take out what stays; where it is not there, FLARE would warn in every round."""
        if self.skip or not any(self.exclude_vars.search(name) for name in dxo.data):
            return dxo
        return super().process_dxo(dxo, shareable, fl_ctx)

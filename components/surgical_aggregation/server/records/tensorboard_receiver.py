"""FLARE's receiver for TensorBoard, for all of a site's figures in one message."""

from __future__ import annotations

from nvflare.apis.analytix import AnalyticsData, AnalyticsDataType
from nvflare.apis.dxo import from_shareable
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.utils.analytix_utils import create_analytic_dxo
from nvflare.app_opt.tracking.tb.tb_receiver import TBAnalyticsReceiver


class TensorBoardReceiver(TBAnalyticsReceiver):
    """TBAnalyticsReceiver that draws a dict of scalars as curves of one run.

    Runs on the server. FLARE's own makes a run of every curve, each with a file and a thread.
    """

    def __init__(self) -> None:
        super().__init__()

    def save(self, fl_ctx: FLContext, shareable: Shareable, record_origin: str) -> None:
        """Write what a site has sent."""
        data = AnalyticsData.from_dxo(from_shareable(shareable))
        if data.data_type != AnalyticsDataType.SCALARS:
            super().save(fl_ctx, shareable, record_origin)
            return
        for tag, value in data.value.items():
            dxo = create_analytic_dxo(tag, value, AnalyticsDataType.SCALAR, global_step=data.step)
            super().save(fl_ctx, dxo.to_shareable(), record_origin)

"""Surgical aggregation of encrypted results."""

from collections.abc import Mapping
from dataclasses import replace

import tenseal
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.aggregators.weighted_aggregation_helper import WeightedAggregationHelper
from nvflare.app_opt.he.homomorphic_encrypt import load_tenseal_context_from_workspace

from surgical_aggregation.aggregation.averaging import Array, Variables
from surgical_aggregation.aggregation.result_checks import Expected, fault
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.aggregation.weighting import SITE_WEIGHTINGS, find
from surgical_aggregation.encryption import ciphertext, contexts
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.wire import variables as wire


class EncryptedSurgicalAggregator(SurgicalAggregator):
    """`SurgicalAggregator` for ciphertexts, with the sums of FLARE's HE aggregator.

    Runs on the server, which has no secret key. FLARE's WeightedAggregationHelper sums weights per
    variable, so it averages every column over the sites that label its class; up to the noise of
    the encryption (below 1e-5), the result is that of `SurgicalAggregator`. Names, shapes and
    dtypes are checked in the same way. Values cannot be checked: one site's NaN spreads to all
    sites.

    Args:
        strategy: See `SurgicalAggregator`. Default "fedbn+".
        weighting: Weighting of sites for body and head: "mean" (default) or "samples". Must equal
            that of the sites' `EncryptResult`, which multiplies before it encrypts.
        limits: See `SurgicalAggregator`. Default None.

    Raises:
        ValueError: `weighting` is none of these.
    """

    def __init__(
        self,
        strategy: str = "fedbn+",
        weighting: str = "mean",
        limits: Mapping[str, int] | None = None,
    ):
        find("weighting", weighting, SITE_WEIGHTINGS)
        super().__init__(
            strategy, body_weighting=weighting, head_weighting=weighting, limits=limits
        )
        self.weighting = weighting
        self._context: tenseal.Context | None = None

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Load the context when the run starts; without one, end the run with the reason."""
        super().handle_event(event_type, fl_ctx)
        if event_type != EventType.START_RUN:
            return
        try:
            self._context = load_tenseal_context_from_workspace(contexts.SERVER, fl_ctx)
        except ValueError as error:
            self.system_panic(contexts.lacking(contexts.SERVER, error), fl_ctx)

    def _as_weights(self, sent: SiteResult, model: GlobalModel) -> SiteResult:
        if sent.differences:
            raise wire.WireError("ciphertexts of whole weights were needed; got differences")
        return sent

    def _fault(self, result: SiteResult, expected: Expected) -> str | None:
        sent = wire.join(result.body, result.columns)
        legible = sorted(name for name, value in sent.items() if not ciphertext.is_packed(value))
        if legible:
            return (
                f"{len(legible)} variables came in the clear, e.g. {legible[0]!r}: is "
                "EncryptResult the last of the site's result filters"
            )
        for name, value in sent.items():
            try:
                ciphertext.unpack(value, self._context, fresh=True)
            except ciphertext.CiphertextError as error:
                return f"{name!r} cannot be added: {error}".rstrip(".")
        body, columns = wire.split(_forms(sent))
        return fault(replace(result, body=body, columns=columns), expected)

    def _expected(self, model: GlobalModel) -> Expected:
        return super()._expected(replace(model, variables=_forms(model.variables)))

    def _average(self, accepted: Mapping[str, SiteResult]) -> dict[str, Array]:
        helper = WeightedAggregationHelper(weigh_by_local_iter=False)  # the sites have multiplied
        forms: dict[str, Array] = {}
        for site, result in accepted.items():
            sent = wire.join(result.body, result.columns)
            forms.update(_forms(sent))
            vectors = {
                name: ciphertext.unpack(value, self._context) for name, value in sent.items()
            }
            helper.add(vectors, self._body_weight(site, result, None), site, 0)
        return {
            name: ciphertext.pack(vector, forms[name])
            for name, vector in sorted(helper.get_result().items())
        }

    def _similarity(self, accepted: Mapping[str, SiteResult]) -> dict[str, float]:
        return {}  # unknown: columns are encrypted


def _forms(variables: Variables) -> dict[str, Array]:
    return {
        name: ciphertext.form(value) if ciphertext.is_packed(value) else value
        for name, value in variables.items()
    }

"""Client-side result filter: encrypt the variables that a site trained."""

from nvflare.apis.dxo import DXO
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_opt.he.model_encryptor import HEModelEncryptor

from surgical_aggregation.aggregation.weighting import SITE_WEIGHTINGS, find
from surgical_aggregation.encryption.ciphertext import pack
from surgical_aggregation.encryption.contexts import SiteKeys


class EncryptResult(SiteKeys, HEModelEncryptor):
    """FLARE's HEModelEncryptor with ciphertexts packed as arrays of bytes.

    Runs on the client, on the result of the training task, after `LabelHead`:

        in   body variables, head/<class>/kernel, head/<class>/bias
        out  the same names, every array a ciphertext (see `ciphertext`)

    Args:
        weighting: "mean" (default), or "samples": values are multiplied by the number of images
            before encryption. Must equal the aggregator's.

    Raises:
        ValueError: `weighting` is none of these.
    """

    def __init__(self, weighting: str = "mean"):
        find("weighting", weighting, SITE_WEIGHTINGS)
        super().__init__(weigh_by_local_iter=weighting == "samples")
        self.weighting = weighting

    def process_dxo(self, dxo: DXO, shareable: Shareable, fl_ctx: FLContext) -> DXO:
        """Encrypt every variable."""
        arrays = dict(dxo.data)  # FLARE encrypts in place
        encrypted = super().process_dxo(dxo, shareable, fl_ctx)
        encrypted.data = {
            name: pack(vector, arrays[name]) for name, vector in encrypted.data.items()
        }
        return encrypted

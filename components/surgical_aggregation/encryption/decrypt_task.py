"""Client-side task-data filter: decrypt a model for the site's executor."""

from nvflare.apis.dxo import DXO, MetaKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_opt.he.constant import HE_ALGORITHM_CKKS
from nvflare.app_opt.he.homomorphic_encrypt import load_tenseal_context_from_workspace
from nvflare.app_opt.he.model_decryptor import HEModelDecryptor

from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.encryption.ciphertext import form, is_packed, shaped, unpack
from surgical_aggregation.encryption.contexts import SiteKeys
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import INITIAL_BODY


class DecryptTask(SiteKeys, HEModelDecryptor):
    """FLARE's HEModelDecryptor for ciphertexts packed as arrays of bytes.

    Runs on the client, on the data of every task with a model:

        in   variables, each an array or a packed ciphertext (see `ciphertext`)
        out  the same names, all plain arrays in their own shape and dtype

    The server's digest of an encrypted initial body (in a resumed run) is checked here and replaced
    by the digest of the decrypted body. The keys are client_context.tenseal of the startup kit; see
    `SiteKeys`.
    """

    def __init__(self) -> None:
        super().__init__()

    def process_dxo(self, dxo: DXO, shareable: Shareable, fl_ctx: FLContext) -> DXO | None:
        """Decrypt the encrypted variables; the first model of a fresh run has none."""
        packed = {name: value for name, value in dxo.data.items() if is_packed(value)}
        if not packed:
            return None
        context = self.tenseal_context or load_tenseal_context_from_workspace(
            self.tenseal_context_file, fl_ctx
        )
        start = shareable.get_header(INITIAL_BODY)
        if start is not None and start != _body_digest(dxo):
            raise SiteError(
                f"the run starts from the encrypted body with sha256 {start[:12]}; this site "
                "received another. Does a filter between server and site change it?"
            )
        vectors = {name: unpack(value, context) for name, value in packed.items()}
        encrypted = DXO(dxo.data_kind, data={**dxo.data, **vectors}, meta=dxo.meta)
        encrypted.set_meta_prop(MetaKey.PROCESSED_ALGORITHM, HE_ALGORITHM_CKKS)
        encrypted.set_meta_prop(
            MetaKey.PROCESSED_KEYS, {name: name in packed for name in encrypted.data}
        )
        plain = super().process_dxo(encrypted, shareable, fl_ctx)
        plain.data = {
            name: shaped(value, form(packed[name])) if name in packed else value
            for name, value in plain.data.items()
        }
        if start is not None:
            shareable.set_header(INITIAL_BODY, _body_digest(plain))
        return plain


def _body_digest(dxo: DXO) -> str:
    return digest(wire.split(dxo.data)[0])

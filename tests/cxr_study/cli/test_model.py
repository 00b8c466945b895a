"""`surgagg model`, as typed."""

from functools import partial

import numpy as np
import pytest

from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.wire import variables as wire
from typed import answer

COLUMN = (np.ones(2, np.float32), np.ones(1, np.float32))


surgagg = partial(answer, "model")


def test_a_site_decrypts_a_model_and_neither_the_server_nor_another_file(tmp_path):
    tenseal = pytest.importorskip("tenseal", reason="needs TenSEAL: the extra 'he'")
    from encrypted import provision
    from surgical_aggregation.encryption.ciphertext import pack

    provision(tmp_path)
    model, plain = tmp_path / "best.npz", tmp_path / "plain.npz"
    keys = {of: tmp_path / f"{of}_context.tenseal" for of in ("client", "server")}
    context = tenseal.context_from(keys["client"].read_bytes())
    hidden = [pack(tenseal.ckks_vector(context, part), part) for part in COLUMN]
    save(Checkpoint(wire.join({}, {"Mass": hidden}), {"round": 3}), model)

    def decrypt(context, code=2):
        return surgagg("decrypt", model, "--context", context, "--out", plain, code=code)

    assert "secret key" in decrypt(keys["server"])
    assert "is no encryption context" in decrypt(model)
    assert not plain.exists()
    decrypt(keys["client"], code=0)
    opened = load(plain)
    np.testing.assert_allclose(opened.variables["head/Mass/kernel"], [1, 1], atol=1e-5)
    assert opened.manifest["round"] == 3
    plain.unlink()
    save(Checkpoint({"conv/kernel": np.zeros(1)}), model)
    assert "is not encrypted" in decrypt(keys["client"]) and not plain.exists()

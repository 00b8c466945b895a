"""`surgagg model`, as typed."""

import numpy as np
import pytest
from typer.testing import CliRunner

from cxr_study.cli.main import app
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.wire import variables as wire

COLUMN = (np.ones(2, np.float32), np.ones(1, np.float32))


def surgagg(*arguments):
    """Type a command; what it prints. A user's mistake is raised."""
    words = ["model", *map(str, arguments)]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


class TestRemoveClasses:
    @pytest.fixture
    def model(self, tmp_path):
        columns = dict.fromkeys(("Edema", "Lung Lesion", "Mass"), COLUMN)
        save(Checkpoint(wire.join({}, columns), {"head_features": 2}), tmp_path / "best.npz")
        return tmp_path / "best.npz"

    def test_writes_a_model_without_the_classes(self, model, tmp_path):
        out = tmp_path / "without.npz"
        before = model.read_bytes()
        text = surgagg("remove-classes", model, "Lung Lesion", "Edema", "--out", out)
        assert wire.classes_of(load(out).variables) == ("Mass",)
        assert model.read_bytes() == before
        assert text.startswith(f"{out}: 1 classes, without Edema, Lung Lesion\n")
        assert "would train it anew" in text

    @pytest.mark.parametrize(
        ("name", "out", "message"),
        [
            ("Mass", "best.npz", r"needs a new file; .*best\.npz exists"),
            ("Hernia", "without.npz", r"got \['Hernia'\]"),
        ],
    )
    def test_a_mistake_writes_nothing(self, model, tmp_path, name, out, message):
        before = model.read_bytes()
        with pytest.raises((FileExistsError, ValueError), match=message):
            surgagg("remove-classes", model, name, "--out", tmp_path / out)
        assert model.read_bytes() == before and list(tmp_path.iterdir()) == [model]


class TestDecrypt:
    @pytest.fixture
    def kit(self, tmp_path):
        """An encrypted model, and the contexts of a site and of the server."""
        tenseal = pytest.importorskip("tenseal", reason="needs TenSEAL: the extra 'he'")
        from encrypted import provision
        from surgical_aggregation.encryption.ciphertext import pack

        provision(tmp_path)
        context = tenseal.context_from((tmp_path / "client_context.tenseal").read_bytes())
        hidden = [pack(tenseal.ckks_vector(context, part), part) for part in COLUMN]
        save(Checkpoint(wire.join({}, {"Mass": hidden}), {"round": 3}), tmp_path / "best.npz")
        return tmp_path

    def decrypt(self, kit, context):
        plain = kit / "plain.npz"
        surgagg("decrypt", kit / "best.npz", "--context", kit / context, "--out", plain)
        return load(plain)

    def test_a_site_opens_the_model(self, kit):
        model = self.decrypt(kit, "client_context.tenseal")
        np.testing.assert_allclose(model.variables["head/Mass/kernel"], [1, 1], atol=1e-5)
        assert model.manifest["round"] == 3

    @pytest.mark.parametrize("context", ["server_context.tenseal", "best.npz"])
    def test_the_server_and_other_files_do_not_nor_is_a_plain_one_opened(self, kit, context):
        with pytest.raises(ValueError, match=r"secret key|is no encryption context"):
            self.decrypt(kit, context)
        save(Checkpoint({"conv/kernel": np.zeros(1)}), kit / "best.npz")
        with pytest.raises(ValueError, match="is not encrypted"):
            self.decrypt(kit, "client_context.tenseal")
        assert not (kit / "plain.npz").exists()

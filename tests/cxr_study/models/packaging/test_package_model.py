import json
import subprocess
import sys

import pytest

from cxr_study.models.loaded_model import load_model
from cxr_study.models.packaging.package_model import package
from surgical_aggregation.checkpoints.checkpoint import load
from tiny_model import CLASSES, saved

PROGRAM = """
import runpy, sys
for name in ("cxr_study", "surgical_aggregation", "nvflare", "pandas", "sklearn"):
    sys.modules[name] = None
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def check(folder):
    """Replay the package without this software."""
    command = [sys.executable, "-c", PROGRAM, folder / "check.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout


def test_a_package_replays_its_reference_without_this_software(tmp_path):
    model = load_model(saved(tmp_path / "best.npz"))
    out = tmp_path / "package"
    package(model, "# Card\n", out)
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md", "check.py", "config.json", "model.keras", "model.npz", "reference.json",
        "reference.png",
    ]  # fmt: skip
    assert json.loads((out / "config.json").read_text())["classes"] == list(CLASSES)
    assert load(out / "model.npz").manifest == model.checkpoint.manifest
    code, said = check(out)
    assert code == 0 and "The same" in said and all(name in said for name in CLASSES)
    reference = json.loads((out / "reference.json").read_text())
    reference["probabilities"]["Mass"] += 0.01
    (out / "reference.json").write_text(json.dumps(reference))
    code, said = check(out)
    assert code == 1 and "NOT the same: greatest difference 1.0e-02" in said


def test_a_package_is_whole_or_not_there(tmp_path, monkeypatch):
    model = load_model(saved(tmp_path / "best.npz"))
    with pytest.raises(FileExistsError, match="needs a new folder"):
        package(model, "", tmp_path)
    from cxr_study.models.packaging import package_model

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(package_model, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        package(model, "", tmp_path / "package")
    assert not (tmp_path / "package").exists()

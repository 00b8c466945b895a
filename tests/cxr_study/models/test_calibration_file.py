import numpy as np

from cxr_study.models import calibration_file as files
from cxr_study.models.calibration_file import Curve, SiteTest
from made_up_calibration import calibrated
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest

MODEL = Checkpoint({"head/Mass/kernel": np.ones(2)})


def test_a_file_reads_back_next_to_its_model_alone(tmp_path):
    made = calibrated(
        "a", "b", of="Mass", model=digest(MODEL.variables), refused={"Hernia": "few"},
        curve=Curve(slope=0.5), test_sensitivity=(0.75, 0.5, 1.0),
        by_site={"a": SiteTest(sensitivity=(0.5, None, None), ece=0.02)},
    )  # fmt: skip
    model = tmp_path / "best.npz"
    assert files.read_calibration(model, MODEL) is None
    files.calibration_path(model).write_text(files.as_json(made))
    assert files.read_calibration(model, MODEL) == files.current_calibration(model, MODEL) == made
    assert files.current_calibration(model, Checkpoint({"head/Mass/kernel": np.zeros(2)})) is None

import numpy as np
import pytest

from cxr_study.models import calibration_file as files
from cxr_study.models.calibration_file import Curve, SiteTest
from made_up_calibration import calibrated
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest

MODEL = Checkpoint({"head/Mass/kernel": np.ones(2)})
POOLED, OWN = (0.75, 0.5, 1.0), (0.5, None, None)


def calibration(*sites, by_site=None):
    facts = {"curve": Curve(slope=0.5), "test_sensitivity": POOLED, "by_site": by_site or {}}
    model, refused = digest(MODEL.variables), {"Hernia": "few"}
    return calibrated(*sites, of="Mass", model=model, refused=refused, **facts)


def test_a_file_reads_back_next_to_its_model_alone(tmp_path):
    made = calibration("a", "b", by_site={"a": SiteTest(sensitivity=OWN, ece=0.02)})
    model = tmp_path / "best.npz"
    assert files.read_calibration(model, MODEL) is None
    files.calibration_path(model).write_text(files.as_json(made))
    assert files.read_calibration(model, MODEL) == files.current_calibration(model, MODEL) == made
    assert files.current_calibration(model, Checkpoint({"head/Mass/kernel": np.zeros(2)})) is None


@pytest.mark.parametrize(("sites", "by_site", "sensitivity"), [
    (("a", "b"), {"a": SiteTest(sensitivity=OWN)}, OWN),
    (("a", "b"), {"b": SiteTest(sensitivity=OWN)}, (None, None, None)),
    (("a",), {}, (None, None, None)),
])  # fmt: skip
def test_a_site_has_its_own_test_numbers(sites, by_site, sensitivity):
    assert calibration(*sites, by_site=by_site).site_test("Mass", "a").sensitivity == sensitivity

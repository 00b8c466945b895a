"""A calibration that was never fitted: of one class of a model."""

from cxr_study.models.calibration_file import CalibrationFile, ClassCalibration, Curve


def calibrated(*sites, of="Edema", model="0", rule="f1", refused=(), **facts):
    """A calibration of one class, made at some sites; with other facts of the class."""
    made = ClassCalibration(**{
        "curve": Curve(), "threshold": 0.25, "sensitivity": 0.9, "specificity": 0.5,
        "images": 1200, "positives": 30, "ece_before": 0.1, "ece_after": 0.05, **facts,
    })  # fmt: skip
    return CalibrationFile(
        model_sha256=model, sites=sites, threshold_rule=rule, created="2026-01-02", version="1",
        classes={of: made}, refused=dict(refused),
    )  # fmt: skip

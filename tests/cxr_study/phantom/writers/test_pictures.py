from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cxr_study.phantom.patients.cohort import sample_cohort
from cxr_study.phantom.writers.layout import Layout
from cxr_study.phantom.writers.pictures import write_pictures


@pytest.fixture
def cohort():
    return sample_cohort("chexpert", 300, np.random.default_rng(0))


def write(folder, cohort, calls):
    names = [f"{row}.png" for row in range(len(cohort))]
    layout = Layout("chexpert", folder / "train.csv", folder, names)
    write_pictures(cohort, layout, "chexpert", 32, np.random.default_rng(1), calls.append)
    return np.array([np.asarray(Image.open(folder / name), float) for name in names])


def test_findings_show_as_plainly_as_the_cohort_says(tmp_path, cohort):
    none = replace(cohort, present=0 * cohort.present)
    faint, plain = (
        replace(cohort, visibility=np.full_like(cohort.visibility, v)) for v in (0.0, 1.0)
    )
    healthy, faint, plain = (
        write(tmp_path / name, drawn, [])
        for name, drawn in (("none", none), ("faint", faint), ("plain", plain))
    )
    assert np.abs(plain - healthy).mean() > 1.3 * np.abs(faint - healthy).mean() > 0


def test_what_was_written_is_reported_piece_by_piece(tmp_path, cohort):
    calls = []
    write(tmp_path, cohort, calls)
    assert calls == [256, len(cohort) - 256]

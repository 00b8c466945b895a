from dataclasses import replace

import numpy as np
from PIL import Image

from cxr_phantom.patients.cohort import sample_cohort
from cxr_phantom.writers.official_layouts import SiteLayout
from cxr_phantom.writers.pictures import write_pictures


def write(folder, cohort, calls):
    names = [f"{row}.png" for row in range(len(cohort))]
    layout = SiteLayout("chexpert", folder / "train.csv", folder, names)
    write_pictures(cohort, layout, "chexpert", 32, np.random.default_rng(1), calls.append)
    return np.array([np.asarray(Image.open(folder / name), float) for name in names])


def test_findings_show_as_plainly_as_the_cohort_says(tmp_path):
    cohort, calls = sample_cohort("chexpert", 300, np.random.default_rng(0)), []
    faint, plain = (
        replace(cohort, visibility=np.full_like(cohort.visibility, v)) for v in (0.0, 1.0)
    )
    healthy = write(tmp_path / "none", replace(cohort, present=0 * cohort.present), calls)
    assert calls == [256, len(cohort) - 256]  # reported piece by piece
    faint, plain = (write(tmp_path / str(i), c, []) for i, c in enumerate((faint, plain)))
    assert np.abs(plain - healthy).mean() > 1.3 * np.abs(faint - healthy).mean() > 0

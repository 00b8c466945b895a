"""DICOM headers of many kinds, against dcmtk; see support/dicom_matrix.py."""

import shutil

import numpy as np
import pytest

from cxr_study.data.images.dicom import decode
from dicom_matrix import NOTED, OTHERWISE, PIXELS, cases, dcm2pnm, read_levels


@pytest.mark.parametrize("kind", PIXELS)
def test_each_header_is_shown_as_by_dcmtk_or_noted_by_name(kind):
    levels, wrong = read_levels(), {}
    for name, parts, data in cases():
        if parts[0] != kind:
            continue
        pixels, header = decode(data)
        theirs = np.array(levels[name].split(), int)
        agree = theirs.size and abs(pixels[0] - theirs).max() <= 1
        noted = tuple(NOTED[part] for part in parts if part in NOTED)
        if not (agree or set(parts) & set(OTHERWISE)) or header.contradictions != noted:
            wrong[name] = (pixels.tolist(), levels[name], header.contradictions)
    assert not wrong


@pytest.mark.skipif(not shutil.which("dcm2pnm"), reason="needs dcmtk's dcm2pnm")
def test_the_levels_are_what_dcmtk_shows():
    levels = read_levels()
    everything = list(cases())
    assert list(levels) == [name for name, *_ in everything]
    for name, parts, data in everything[::7]:
        assert (name, levels[name]) == (name, dcm2pnm(data, parts[3]))

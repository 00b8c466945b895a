from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image, features
from pydicom.encaps import encapsulate
from pydicom.uid import MPEG2MPML, ImplicitVRLittleEndian, JPEG2000Lossless, RLELossless

from cxr_study.data.images import dicom
from cxr_study.data.images.dicom import DicomError, grey, is_dicom
from dicom_files import dataset, lut, written


def shown(values, dtype=np.uint16, **elements):
    return grey(written(dataset(np.array(values, dtype), **elements)))[0].tolist()


FROM_1000_TO_2000 = {"WindowCenter": 1500.5, "WindowWidth": 1001}


@pytest.mark.parametrize(
    ("values", "elements", "grey"),
    [
        ([0, 1000, 1200, 2000, 4095], {}, [0, 0, 51, 255, 255]),
        ([1000, 1200, 2000], {"WindowCenter": [1500.5, 7], "WindowWidth": [1001, 3]}, [0, 51, 255]),
        ([600, 700, 1100], {"RescaleSlope": 2, "RescaleIntercept": -200}, [0, 51, 255]),
        ([4000, 2800, 2000], {"RescaleSlope": -1, "RescaleIntercept": 4000}, [0, 51, 255]),
        ([1000, 1200, 2000], {"PhotometricInterpretation": "MONOCHROME1"}, [255, 204, 0]),
        (
            [0, 1500, 4095],
            {"WindowCenter": 1500, "WindowWidth": 100, "VOILUTFunction": "SIGMOID"},
            [0, 128, 255],
        ),
    ],
    ids=["ends", "first of two", "rescaled", "turned round", "inverted", "sigmoid"],
)
def test_the_window_makes_black_and_white(values, elements, grey):
    assert shown(values, **FROM_1000_TO_2000 | elements) == grey


def test_signed_pixels_keep_their_sign_in_a_window():
    elements = {"WindowCenter": 0.5, "WindowWidth": 1001}  # from -500 to 500
    assert shown([-2000, -300, 500], np.int16, **elements) == [0, 51, 255]


PADDING = {"PixelPaddingValue": 4000, "PixelPaddingRangeLimit": 4095}
INVERTED = {"PhotometricInterpretation": "MONOCHROME1"}


@pytest.mark.parametrize(
    ("values", "dtype", "elements", "grey"),
    [
        *(
            ([100, 110, 102, 104], t, {}, [0, 255, 51, 102])
            for t in (np.uint8, np.uint16, np.int16)
        ),
        ([-100, 0, -80], np.int16, {}, [0, 255, 51]),
        ([100, 0, 80], np.uint16, {"RescaleSlope": -1, "RescaleIntercept": 0}, [0, 255, 51]),
        ([7, 7], np.uint16, {}, [0, 0]),
        ([100, 110], np.uint16, {"WindowCenter": None, "WindowWidth": None}, [0, 255]),
        ([100, 110, 4095], np.uint16, {"PixelPaddingValue": 4095}, [0, 255, 0]),
        ([100, 110, 4000, 4050, 4095], np.uint16, PADDING, [0, 255, 0, 0, 0]),
        ([100, 110, 4000], np.uint16, PADDING | INVERTED, [255, 0, 0]),
        ([100, 110, 102], np.uint16, INVERTED, [255, 0, 204]),
    ],
)
def test_without_a_window_least_and_greatest_value_but_padding_are_black_and_white(
    values, dtype, elements, grey
):
    assert shown(values, dtype, **elements) == grey


STEPS = lut([0, 1000, 250], first=10, bits=10)
OF_4096 = {(bits, step): lut([i // step for i in range(4096)], bits=bits)
           for bits, step in ((8, 16), (12, 1))}  # fmt: skip
RESCALED = {"VOILUTSequence": lut([0, 20, 100]), "RescaleSlope": 1}


@pytest.mark.parametrize(
    ("values", "elements", "grey"),
    [
        ([5, 10, 11, 12, 13], {"VOILUTSequence": STEPS}, [0, 0, 255, 64, 64]),
        # The table goes before the window.
        ([10, 11], {"VOILUTSequence": STEPS, "WindowCenter": 11, "WindowWidth": 1}, [0, 255]),
        ([0, 1, 2], {"VOILUTSequence": lut([20, 10, 0])}, [255, 128, 0]),
        # It is looked up with rescaled values; above all entries, all are the last.
        ([10, 11, 12], RESCALED | {"RescaleIntercept": -10}, [0, 51, 255]),
        ([0, 1, 2], RESCALED | {"RescaleIntercept": 2**16}, [255, 255, 255]),
        *(
            ([0, 1024, 4095], {name: table}, [0, 64, 255])
            for name in ("VOILUTSequence", "ModalityLUTSequence")
            for table in OF_4096.values()
        ),
    ],
)
def test_tables_are_looked_up(values, elements, grey):
    assert shown(values, **elements) == grey


def test_rows_and_columns_stay():
    stored = [[0, 51], [102, 255], [0, 0]]
    assert grey(written(dataset(np.array(stored, np.uint8)))).tolist() == stored


class TestTransferSyntax:
    def test_implicit_value_representation_and_run_length_encoding(self):
        data = written(dataset(np.array([1, 2], np.uint16), ImplicitVRLittleEndian))
        assert grey(data).tolist() == [[0, 255]]
        file = dataset(np.array([[1, 2], [3, 1]], np.uint16))
        file.compress(RLELossless)
        assert grey(written(file)).tolist() == [[0, 128], [255, 0]]

    @pytest.mark.skipif(not features.check("jpg_2000"), reason="Pillow without JPEG 2000")
    def test_jpeg_2000(self):
        pixels = np.random.default_rng(0).integers(0, 4096, (32, 16), dtype=np.uint16)
        coded = BytesIO()
        Image.fromarray(pixels).save(coded, "JPEG2000", irreversible=False, no_jp2=True)
        file = dataset(pixels, JPEG2000Lossless)
        file.PixelData = encapsulate([coded.getvalue()])
        file["PixelData"].is_undefined_length = True
        np.testing.assert_array_equal(grey(written(file)), grey(written(dataset(pixels))))

    def test_a_film_is_refused(self):
        file = dataset(np.array([1, 2], np.uint16), MPEG2MPML)
        file.PixelData = encapsulate([b"film"])
        file["PixelData"].is_undefined_length = True
        with pytest.raises(DicomError, match=r"syntax MPEG2 .* \(1\.2\.840.*\) is not supported"):
            grey(written(file))

    def test_a_decoder_that_is_not_installed_is_named(self, monkeypatch):
        none = SimpleNamespace(is_available=False, missing_dependencies=["a - requires b", "c"])
        monkeypatch.setattr(dicom, "get_decoder", lambda syntax: none)
        match = r"Explicit VR Little Endian .* not installed: a - requires b; or c$"
        with pytest.raises(DicomError, match=match):
            shown([1, 2])


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ({"NumberOfFrames": 2}, "needs one frame; has 2"),
        ({"PhotometricInterpretation": "RGB"}, "MONOCHROME1 or 2; has RGB"),
        ({"PhotometricInterpretation": "PALETTE COLOR"}, "MONOCHROME1 or 2; has PALETTE COLOR"),
        ({"BitsAllocated": 32}, "at most 16 bits per pixel; has 32"),
    ],
)
def test_what_is_no_single_grey_image_is_refused(elements, message):
    with pytest.raises(DicomError, match=message):
        shown([1, 2], **elements)
    assert not is_dicom(b"DICM") and is_dicom(written(dataset(np.array([1, 2], np.uint16))))

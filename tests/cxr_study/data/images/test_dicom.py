import shutil
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pydicom
import pytest
from PIL import Image, features
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate, generate_frames
from pydicom.uid import MPEG2MPML, ImplicitVRLittleEndian, JPEG2000Lossless, RLELossless

from cxr_study.data.images import dicom
from cxr_study.data.images.dicom import DicomError, decode, is_dicom, read_header
from dicom_files import dataset, encoded, lut, written
from dicom_matrix import NOTED, OTHERWISE, PIXELS, cases, dcm2pnm, read_levels


def grey(data):
    return decode(data)[0]


def shown(values, dtype=np.uint16, **elements):
    return grey(written(dataset(np.array(values, dtype), **elements))).tolist()


WINDOW = {"WindowCenter": 1500.5, "WindowWidth": 1001}  # from 1000 to 2000
SIGMOID = {"WindowCenter": 1500, "WindowWidth": 100, "VOILUTFunction": "SIGMOID"}
SIGNED = {"WindowCenter": 0.5, "WindowWidth": 1001}  # from -500 to 500
INVERTED = {"PhotometricInterpretation": "MONOCHROME1"}
PADDING = {"PixelPaddingValue": 4000, "PixelPaddingRangeLimit": 4095}
STEPS = lut([0, 1000, 250], first=10, bits=10)
OF_4096 = {(bits, step): lut([i // step for i in range(4096)], bits=bits)
           for bits, step in ((8, 16), (12, 1))}  # fmt: skip
OF_65536 = lut(list(range(65536)))  # its descriptor says 0, as the standard wants
RESCALED = {"VOILUTSequence": lut([0, 20, 100]), "RescaleSlope": 1}
COMPRESSED = "1.2.840.10008.1.2.4."
U8, U16, I16 = np.uint8, np.uint16, np.int16
NOISE = np.random.default_rng(0).integers(0, 65536, (32, 48))


@pytest.mark.parametrize(("dtype", "values", "elements", "grey"), [
    # A window makes black and white.
    (U16, [0, 1000, 1200, 2000, 4095], WINDOW, [0, 0, 51, 255, 255]),
    (U16, [1000, 1200, 2000], {"WindowCenter": [1500.5, 7], "WindowWidth": [1001, 3]},
     [0, 51, 255]),
    (U16, [600, 700, 1100], WINDOW | {"RescaleSlope": 2, "RescaleIntercept": -200}, [0, 51, 255]),
    (U16, [4000, 2800, 2000], WINDOW | {"RescaleSlope": -1, "RescaleIntercept": 4000},
     [0, 51, 255]),
    (U16, [0, 1500, 4095], SIGMOID, [0, 128, 255]),
    # Without one, the least and the greatest value but padding do.
    *((t, [100, 110, 102, 104], {}, [0, 255, 51, 102]) for t in (U8, U16, I16)),
    (I16, [-100, 0, -80], {}, [0, 255, 51]),
    (U16, [100, 0, 80], {"RescaleSlope": -1, "RescaleIntercept": 0}, [0, 255, 51]),
    (U16, [100, 110], {"RescaleSlope": None, "RescaleIntercept": 0}, [0, 255]),
    (U16, [100, 110], {"RescaleSlope": -1, "RescaleIntercept": None}, [0, 255]),
    (U16, [7, 7], {}, [0, 0]),
    (U16, [100, 110], {"WindowCenter": None, "WindowWidth": None}, [0, 255]),
    (U16, [100, 110, 4095], {"PixelPaddingValue": 4095}, [0, 255, 0]),
    (U16, [100, 110, 4000, 4050, 4095], PADDING, [0, 255, 0, 0, 0]),
    (U16, [100, 110, 4000], PADDING | INVERTED, [255, 0, 0]),
    # Tables are looked up, before the window.
    (U16, [5, 10, 11, 12, 13], {"VOILUTSequence": STEPS}, [0, 0, 255, 64, 64]),
    (U16, [10, 11], {"VOILUTSequence": STEPS, "WindowCenter": 11, "WindowWidth": 1}, [0, 255]),
    (U16, [0, 1028, 4095], {"VOILUTSequence": OF_65536}, [0, 4, 16]),
    # That is done with rescaled values; above all entries, all are the last.
    (U16, [10, 11, 12], RESCALED | {"RescaleIntercept": -10}, [0, 51, 255]),
    (U16, [0, 1, 2], RESCALED | {"RescaleIntercept": 2**16}, [255, 255, 255]),
    *((U16, [0, 1024, 4095], {name: table}, [0, 64, 255])
     for name in ("VOILUTSequence", "ModalityLUTSequence") for table in OF_4096.values()),
    (U8, [[0, 51], [102, 255], [0, 0]], {}, [[0, 51], [102, 255], [0, 0]]),
])  # fmt: skip
def test_stored_values_become_grey(dtype, values, elements, grey):
    assert shown(values, dtype, **elements) == np.atleast_2d(grey).tolist()


class TestTransferSyntax:
    def test_implicit_value_representation_and_run_length_encoding(self):
        data = written(dataset(np.array([1, 2], np.uint16), ImplicitVRLittleEndian))
        assert grey(data).tolist() == [[0, 255]]
        file = dataset(np.array([[1, 2], [3, 1]], np.uint16))
        file.compress(RLELossless)
        assert grey(written(file)).tolist() == [[0, 128], [255, 0]]

    @pytest.mark.parametrize("syntax", ["57", "70", "80", "81", "90"])
    @pytest.mark.parametrize(("dtype", "bits", "elements"), [
        (U8, 8, {}), (U16, 12, INVERTED), (U16, 16, {}), (I16, 12, SIGNED), (I16, 16, INVERTED),
    ])  # fmt: skip
    def test_lossless_compression_changes_no_pixel(self, syntax, dtype, bits, elements):
        pixels = (NOISE % 2**bits - 2 ** (bits - 1) * (dtype is I16)).astype(dtype)
        file = dataset(pixels, BitsStored=bits, HighBit=bits - 1, **elements)
        coded = encoded(file, f"{COMPRESSED}{syntax}")
        np.testing.assert_array_equal(dicom._stored(pydicom.dcmread(BytesIO(coded)))[0], pixels)
        np.testing.assert_array_equal(grey(coded), grey(written(file)))

    def test_the_sign_in_jpeg_ls_is_the_highest_stored_bit(self):
        plain = dataset((NOISE % 4096).astype(U16), BitsStored=16, HighBit=15)
        file = pydicom.dcmread(BytesIO(encoded(plain, f"{COMPRESSED}80")))
        file.PixelRepresentation, file.BitsStored, file.HighBit = 1, 12, 11
        np.testing.assert_array_equal(dicom._stored(file)[0], (NOISE + 2048) % 4096 - 2048)

    @pytest.mark.parametrize("syntax", ["57", "70", "80", "90"])
    def test_overlays_in_the_bits_above_are_no_part_of_a_compressed_image(self, syntax):
        plain = (NOISE % 4096).astype(U16)
        over = dataset(plain + (NOISE > 9999) * U16(0x8000), BitsStored=16, HighBit=15)
        file = pydicom.dcmread(BytesIO(encoded(over, f"{COMPRESSED}{syntax}")))
        file.BitsStored, file.HighBit = 12, 11
        shown, header = decode(written(file))
        np.testing.assert_array_equal(shown, grey(written(dataset(plain))))
        seen = syntax in ("80", "90")  # gdcm itself cuts off what is beyond in the others
        assert header.contradictions == (("values beyond its 12 bits",) if seen else ())
        file.add_new(0x60000102, "US", 15)  # an overlay's
        assert decode(written(file))[1].contradictions == ()
        file.HighBit = 15
        with pytest.raises(DicomError, match="needs high bit 11 where pixels are compressed"):
            grey(written(file))

    @pytest.mark.parametrize(
        ("syntax", "at", "byte"), [("70", 6, 17), ("70", 15, 0), ("70", 18, 2), ("80", 10, 0)]
    )
    def test_a_damaged_header_does_not_end_the_process(self, syntax, at, byte):
        coded = encoded(dataset((NOISE % 4096).astype(U16)), f"{COMPRESSED}{syntax}")
        file = pydicom.dcmread(BytesIO(coded))
        frame = bytearray(next(generate_frames(file.PixelData, number_of_frames=1)))
        frame[at] = byte
        file.PixelData = encapsulate([bytes(frame)])
        with pytest.raises(DicomError, match="the JPEG's header is damaged"):
            grey(written(file))

    def test_a_film_is_named_and_a_decoder_that_is_not_installed_with_its_extra(self, monkeypatch):
        film = dataset(np.array([1, 2], np.uint16), MPEG2MPML)
        film.PixelData = encapsulate([b"film"])
        film["PixelData"].is_undefined_length = True
        with pytest.raises(DicomError, match=r"cannot be decoded \(MPEG2 "):
            grey(written(film))
        none = SimpleNamespace(is_available=False)
        monkeypatch.setattr(dicom, "get_decoder", lambda syntax: none)
        film.file_meta.TransferSyntaxUID = f"{COMPRESSED}70"
        match = r"\(1\.2\.840\.10008\.1\.2\.4\.70\) needs a decoder: pip install '.*\[dicom\]'$"
        with pytest.raises(dicom.MissingDecoderError, match=match):
            grey(written(film))


@pytest.mark.parametrize(("elements", "message"), [
    ({"NumberOfFrames": 2}, "needs one frame; has 2"),
    ({"PhotometricInterpretation": "RGB"}, "MONOCHROME1 or 2; has RGB"),
    ({"PhotometricInterpretation": "PALETTE COLOR"}, "MONOCHROME1 or 2; has PALETTE COLOR"),
    ({"BitsAllocated": 32}, "at most 16 bits per pixel; has 32"),
    ({"BitsStored": 17}, "needs 1 to 16 bits stored; has 17"),
])  # fmt: skip
def test_what_is_no_single_grey_image_is_refused(elements, message):
    with pytest.raises(DicomError, match=message):
        shown([1, 2], **elements)
    assert not is_dicom(b"DICM")


def test_a_truncated_compressed_file_says_that_it_is_cut_off():
    if not features.check("jpg_2000"):
        pytest.skip("needs Pillow with JPEG 2000")
    data = BytesIO()
    Image.fromarray(np.arange(64 * 64, dtype=np.uint8).reshape(64, 64)).save(data, "JPEG2000")
    file = dataset(np.zeros((64, 64), np.uint8), JPEG2000Lossless)
    file.PixelData = encapsulate([data.getvalue()])
    file["PixelData"].is_undefined_length = True
    whole = written(file)
    for length in (len(whole) // 2, len(whole) - 30):
        with pytest.raises(DicomError, match=r"has no pixels; is it cut off|file is cut off"):
            grey(whole[:length])


def test_a_file_without_preamble_is_decoded_as_with_it():
    whole = written(dataset(np.array([[1, 2], [3, 4]], np.uint16)))
    bare = whole[whole.index(b"\x08\x00\x16\x00") :]  # from the element SOPClassUID on
    assert is_dicom(bare)
    assert grey(bare).tolist() == grey(whole).tolist() == [[0, 85], [170, 255]]


@pytest.mark.parametrize(
    ("dtype", "written_as"),
    [(I16, ("SS", -2000)), (I16, ("US", 63536)), (I16, ("US", 2096)),
     (U16, ("US", 40000)), (U16, ("SS", -25536))],
)  # fmt: skip
def test_padding_is_black_whichever_sign_it_is_written_with(dtype, written_as):
    padding = -2000 if dtype is I16 else 40000
    bits = 16 if dtype is U16 else 12
    file = dataset(np.array([padding, 0, 500, 1000], dtype), BitsStored=bits, HighBit=bits - 1)
    file.add_new("PixelPaddingValue", *written_as)
    assert grey(written(file)).tolist() == [[0, 0, 128, 255]]


def code(meaning):
    item = Dataset()
    item.CodeMeaning = meaning
    return [item]


FOR_PROCESSING = "for processing, not for presentation"


@pytest.mark.parametrize(("elements", "found", "frontal"), [
    ({}, (), True),
    ({"Modality": "DX", "ViewPosition": "PA", "BodyPartExamined": "CHEST"}, (), True),
    ({"Modality": "CT", "BodyPartExamined": "KNEE"}, ("modality CT", "body part KNEE"), True),
    ({"ViewPosition": "LL"}, (), False),
    *(({"ViewCodeSequence": code(view)}, (), False) for view in ("left lateral", "lateral")),
    *(({"ViewCodeSequence": code(view)}, (), True)
      for view in ("postero-anterior", "antero-posterior", "left lateral decubitus")),
    *(({"SeriesDescription": series}, (), False)
      for series in ("Thorax LAT", "chest_lateral", "Thorax seitlich")),
    *(({"SeriesDescription": series}, (), True)
      for series in ("Chest PA/LAT", "bilateral lungs", "Chest 2 views lat", "LAT decubitus")),
    ({"ViewPosition": "PA", "SeriesDescription": "Chest LAT"}, (), True),
    ({"PresentationIntentType": "FOR PROCESSING"}, (FOR_PROCESSING,), True),
    ({"SOPClassUID": "1.2.840.10008.5.1.4.1.1.1.1.1"}, (FOR_PROCESSING,), True),
    ({"PresentationIntentType": "FOR PRESENTATION"}, (), True),
    ({"ViewPosition": "PA", "PatientOrientation": ["L", "F"]}, (), True),
    ({"PatientOrientation": ["A", "F"]}, (), True),  # of a lateral, perhaps
    ({"ViewPosition": "LL", "PatientOrientation": ["P", "F"]}, (), False),
    *(({"PatientOrientation": [*way], "ViewPosition": "PA"},
       (f"patient orientation {way[0]}\\{way[1]}",), True) for way in ("RF", "FL", "RH", "AF")),
])  # fmt: skip
def test_a_header_says_what_contradicts_a_radiograph_of_a_chest(tmp_path, elements, found, frontal):
    data = written(dataset(np.array([1, 2], np.uint16), **elements))
    header = decode(data)[1]
    assert (header.contradictions, header.is_frontal) == (found, frontal)
    assert (header.width, header.height) == (2, 1)
    path = tmp_path / "a.dcm"
    path.write_bytes(data)
    assert read_header(path) == header


EXAMPLES = Path(pydicom.__file__).parent / "data/test_files"


@pytest.mark.filterwarnings("ignore")
def test_every_file_of_pydicoms_tests_is_decoded_or_named_for_what_it_is():
    messages = {}
    for path in sorted(EXAMPLES.rglob("*")):
        if path.is_file() and is_dicom(path.read_bytes()):
            try:
                grey(path.read_bytes())
            except DicomError as error:
                messages[path.name] = str(error)
    assert len(messages) > 80
    for name, what in messages.items():
        assert "has no attribute" not in what and "invalid literal" not in what, (name, what)
    assert messages["DICOMDIR"] == "the DICOM file holds no image: Media Storage Directory Storage"
    assert messages["rtplan.dcm"].endswith("RT Plan Storage, modality RTPLAN")
    assert messages["rtstruct.dcm"].endswith("modality RTSTRUCT")  # without preamble


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
    levels, everything = read_levels(), list(cases())
    assert list(levels) == [name for name, *_ in everything]
    for name, parts, data in everything[::7]:
        assert (name, levels[name]) == (name, dcm2pnm(data, parts[3]))

import logging
import struct
import warnings
import zlib
from io import BytesIO

import numpy as np
import pydicom
import pytest
from PIL import Image

from cxr_study.data.images.decoding import decode, decode_bytes, quiet
from cxr_study.data.images.image_files import ImageError

GREY = np.array([[0, 50], [100, 255]], dtype=np.uint8)


@pytest.fixture
def file(tmp_path):
    def write(pixels, name="x.png", mode=None):
        image = Image.fromarray(np.asarray(pixels))
        (image.convert(mode) if mode else image).save(tmp_path / name)
        return tmp_path / name

    return write


def dicom_bytes(pixels, **elements):
    file = pydicom.Dataset()
    file.file_meta = pydicom.dataset.FileMetaDataset()
    file.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    file.SOPClassUID, file.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.1.1", "1.2.3"
    file.Rows, file.Columns = pixels.shape
    file.SamplesPerPixel, file.PhotometricInterpretation = 1, "MONOCHROME2"
    file.BitsAllocated = file.BitsStored = 8 * pixels.itemsize
    file.HighBit, file.PixelRepresentation = file.BitsStored - 1, 0
    file.PixelData = pixels.tobytes()
    file.update(elements)
    data = BytesIO()
    file.save_as(data, enforce_file_format=True)
    return data.getvalue()


class TestDecode:
    @pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P"])
    def test_grey_comes_out_of_every_colour_model_unchanged(self, file, mode):
        pixels = decode(file(GREY, mode=mode), 2)
        assert pixels.dtype == np.uint8
        np.testing.assert_array_equal(pixels, GREY)

    def test_transparency_is_ignored(self, file):
        rgba = np.dstack([GREY, GREY, GREY, np.zeros_like(GREY)])
        np.testing.assert_array_equal(decode(file(rgba), 2), GREY)

    def test_sixteen_bits_are_scaled_by_their_full_range(self, file):
        deep = np.array([[0, 257], [51_600, 65535]], dtype=np.uint16)
        np.testing.assert_array_equal(decode(file(deep), 2), [[0, 1], [201, 255]])

    def test_jpeg_is_read_as_grey(self, file):
        flat = np.full((16, 16, 3), 77, dtype=np.uint8)
        np.testing.assert_array_equal(decode(file(flat, "x.jpg"), 16), flat[..., 0])

    @pytest.mark.parametrize("name", ["x.dicom", "x", "x.png"])
    def test_dicom_is_known_whatever_its_name(self, tmp_path, name):
        (tmp_path / name).write_bytes(dicom_bytes(GREY))
        np.testing.assert_array_equal(decode(tmp_path / name, 2), GREY)

    def test_reducing_averages_and_does_not_pick(self, file):
        checks = (np.indices((8, 8)).sum(axis=0) % 2 * 255).astype(np.uint8)
        assert np.all(abs(decode(file(checks), 2).astype(int) - 127) < 10)

    @pytest.mark.parametrize("kind", ["png", "dicom"])
    def test_an_oblong_is_stretched_to_the_square(self, file, kind):
        left_white = np.repeat([[255, 0]], 8, axis=0).repeat(20, axis=1).astype(np.uint8)
        data = dicom_bytes(left_white) if kind == "dicom" else file(left_white).read_bytes()
        pixels = decode_bytes(data, 8)
        assert pixels.shape == (8, 8)
        assert pixels[:, :3].min() == 255 and pixels[:, 5:].max() == 0


def png_with_short_header():
    chunk = b"IHDR" + struct.pack(">II", 2, 2)
    return (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 8) + chunk + struct.pack(">I", zlib.crc32(chunk))
    )


class TestRefusal:
    @pytest.mark.parametrize("kind", ["png", "jpg", "dicom"])
    def test_a_cut_off_file_is_refused_by_name(self, file, tmp_path, kind):
        noise = np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)
        data = dicom_bytes(noise) if kind == "dicom" else file(noise, f"n.{kind}").read_bytes()
        (tmp_path / "cut").write_bytes(data[:1500])
        with pytest.raises(ImageError, match=r"/cut cannot be decoded: ."):
            decode(tmp_path / "cut", 64)

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"", "x cannot be decoded: the file is empty"),
            (b"<html>404</html>", "x cannot be decoded: it is neither PNG, JPEG nor DICOM"),
            (png_with_short_header(), "x cannot be decoded: ."),
            (dicom_bytes(GREY, NumberOfFrames=2), "x cannot be decoded: needs one frame; has 2"),
            (bytes(128) + b"DICM" + bytes(99), "x cannot be decoded: ."),
        ],
    )
    def test_what_is_no_image_is_refused_by_name(self, tmp_path, data, message):
        (tmp_path / "x").write_bytes(data)
        with pytest.raises(ImageError, match=message):
            decode(tmp_path / "x", 2)

    def test_a_missing_file_is_refused_by_name(self, tmp_path):
        with pytest.raises(ImageError, match=r"gone\.png cannot be read: No such file"):
            decode(tmp_path / "gone.png", 2)


def test_too_little_memory_is_no_fault_of_the_file(file, monkeypatch):
    def fail(*arguments, **options):
        raise MemoryError

    path = file(GREY)
    monkeypatch.setattr(Image, "open", fail)
    with pytest.raises(MemoryError):
        decode(path, 2)


def test_remarks_about_files_can_be_silenced(caplog):
    odd = dicom_bytes(GREY).replace(b"1.2.3\0", b"1.02.3")  # no legal identifier
    with pytest.warns(UserWarning, match="Invalid value for VR UI"):
        pydicom.dcmread(BytesIO(odd)).SOPInstanceUID  # noqa: B018
    assert caplog.records
    caplog.clear()
    level = logging.getLogger("pydicom").level
    with quiet(), warnings.catch_warnings(record=True) as heard:
        pydicom.dcmread(BytesIO(odd)).SOPInstanceUID  # noqa: B018
    assert not heard and not caplog.records
    assert logging.getLogger("pydicom").level == level

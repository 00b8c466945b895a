"""DICOM radiographs to 8-bit grey, as a viewer would first show them; what their headers say."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import pydicom
from pydicom import DataElement
from pydicom import uid as uids
from pydicom.config import IGNORE
from pydicom.encaps import generate_frames
from pydicom.pixels import apply_modality_lut, apply_voi_lut, get_decoder, pixel_array

from cxr_study.data.labels.label_table import FRONTAL

MODALITIES = ("CR", "DX", "DR", "RG", "CXR")
"""Of radiographs (PS3.3, C.7.3.1.1.1, and what is found besides)."""

_CHEST = ("CHEST", "THORAX", "LUNG")  # one of them is in the name of the body part
_LATERAL = r"(?<![A-Z])(LAT|LATERAL|LL|RL|PROFIL|SEITLICH)(?![A-Z])"
_NOT_ALONE = r"(?<![A-Z])(PA|AP|P\.A|A\.P|2|TWO)(?![A-Z])|DECUB"  # lying, seen from the front
_FORBIDDEN = {"MONOCHROME1": "IDENTITY", "MONOCHROME2": "INVERSE"}  # shapes of presentation LUTs


class DicomError(ValueError):
    """A DICOM file holds no single grey image, or one that cannot be decompressed here."""


@dataclass(frozen=True)
class DicomHeader:
    """What a DICOM file says of itself.

    Attributes:
        view: View position, in capitals; LATERAL where it is blank and the view's code or, without
            one, the series' description names a lateral alone; "" where it is not said.
        contradictions: What tells that it is no radiograph of a chest, such as "modality CT", or
            none that can be shown as it is meant, such as "window width 0".
        width: Pixels; 0 where it is not said.
        height: The same.
    """

    view: str
    contradictions: tuple[str, ...]
    width: int
    height: int

    @property
    def is_frontal(self) -> bool:
        """Whether the view is frontal, or not said."""
        return not self.view or self.view in FRONTAL


def header_of(file: pydicom.Dataset) -> DicomHeader:
    """Look at a data set, with or without its pixels.

    Raises:
        DicomError: An element cannot be read.
    """
    view = _view(file)
    size = (int(value(file, keyword) or 0) for keyword in ("Columns", "Rows"))
    return DicomHeader(view, tuple(_contradictions(file, view)), *size)


def value(file: pydicom.Dataset, keyword: str) -> Any:
    """The value of an element; None: there is none.

    Raises:
        DicomError: It cannot be read.
    """
    try:
        return file.get(keyword)
    except Exception as error:
        raise DicomError(
            f"the DICOM file is damaged: {keyword} cannot be read: {text(error)}"
        ) from error


def window_width(file: pydicom.Dataset) -> float | None:
    """Width of the first window; None: there is none, or none with a centre."""
    centre, width = value(file, "WindowCenter"), value(file, "WindowWidth")
    return None if centre is None or width is None else float(np.ravel(width)[0])


def misplaced(file: pydicom.Dataset) -> bool:
    """Whether the stored bits cannot end at the high bit, which they then do not."""
    high, stored = value(file, "HighBit"), value(file, "BitsStored") or 0
    return high is not None and not stored - 1 <= high < (value(file, "BitsAllocated") or 16)


def text(error: Exception) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _contradictions(file: pydicom.Dataset, view: str) -> Iterator[str]:
    modality, part = _capitals(file, "Modality"), _capitals(file, "BodyPartExamined")
    if modality and modality not in MODALITIES:
        yield f"modality {modality}"
    if part and not any(word in part for word in _CHEST):
        yield f"body part {part}"
    kind = uids.UID(str(value(file, "SOPClassUID") or "")).name.upper()
    if "FOR PROCESSING" in (_capitals(file, "PresentationIntentType"), kind.rpartition(" - ")[2]):
        yield "for processing, not for presentation"
    across, down = (*(value(file, "PatientOrientation") or ("", "")), "")[:2]
    usual = ("L",) if view in FRONTAL else ("L", "A", "P")
    if (across or down) and not (across.startswith(usual) and down.startswith("F")):
        yield f"patient orientation {across}\\{down}"
    colours = _capitals(file, "PhotometricInterpretation")
    if (shape := _capitals(file, "PresentationLUTShape")) == _FORBIDDEN.get(colours):
        yield f"presentation LUT shape {shape} in {colours}"
    if misplaced(file):
        yield f"high bit {value(file, 'HighBit')} with {value(file, 'BitsStored')} bits stored"
    if value(file, "RescaleSlope") == 0:
        yield "rescale slope 0"
    width = window_width(file)
    if width is not None and width < 1 and not value(file, "VOILUTSequence"):
        yield f"window width {width:g}"


def _view(file: pydicom.Dataset) -> str:
    if said := _capitals(file, "ViewPosition"):
        return said
    codes = [_capitals(code, "CodeMeaning") for code in value(file, "ViewCodeSequence") or ()]
    for named in codes or [_capitals(file, "SeriesDescription")]:
        if re.search(_LATERAL, named) and not re.search(_NOT_ALONE, named):
            return "LATERAL"
    return ""


def _capitals(file: pydicom.Dataset, keyword: str) -> str:
    return str(value(file, keyword) or "").strip().upper()


_LOSSLESS = (uids.JPEGLossless, uids.JPEGLosslessSV1, *uids.JPEGLSTransferSyntaxes)
_DECODED_BY_EXTRA = (*_LOSSLESS, *uids.JPEGTransferSyntaxes, *uids.JPEG2000TransferSyntaxes)
_FAR = 1e12  # beyond every value that a window could end at


class MissingDecoderError(DicomError):
    """A DICOM file that could be decoded if one more package were installed."""


def is_dicom(data: bytes) -> bool:
    """Whether these are bytes of a DICOM file (PS3.10, section 7.1), perhaps of a bare data set."""
    return data[128:132] == b"DICM" or _is_bare(data)


def is_dicom_file(path: Path) -> bool:
    """Whether a file is one of DICOM; one that cannot be read is none."""
    try:
        with path.open("rb") as file:
            return is_dicom(file.read(132))
    except OSError:
        return False


def read_header(path: Path) -> DicomHeader:
    """Look at a DICOM file without its pixels.

    Raises:
        DicomError: The file is damaged.
    """
    file = _of_pydicom(pydicom.dcmread, path, stop_before_pixels=True, force=True)
    return _of_pydicom(header_of, file)


def read_number(path: Path, keyword: str) -> tuple[str, str]:
    """Read the number of an image, as the element `keyword` has it, and its view.

    Raises:
        DicomError: The file is none of DICOM, has no rows of pixels or no number, or is damaged.
    """
    if not is_dicom_file(path):
        raise DicomError("no DICOM file")
    file = _of_pydicom(pydicom.dcmread, path, stop_before_pixels=True, force=True)
    number = str(value(file, keyword) or "").strip()
    if not number or not value(file, "Rows"):
        raise DicomError(f"no picture, or no {keyword}")
    return number, _of_pydicom(header_of, file).view


def decode(data: bytes) -> tuple[np.ndarray, DicomHeader]:
    """Decode a DICOM radiograph with one grey frame of at most 16 bits.

    Stored values go through the modality LUT or rescale, then through the first VOI LUT or, without
    one, the first window, if it is at least one value wide: its ends become black and white. A file
    with neither is stretched from its least to its greatest value. MONOCHROME1 is inverted, so that
    air is dark. Padding is black and does not count for the range.

    Returns:
        uint8 array of shape (rows, columns), and what the file says of itself.

    Raises:
        DicomError: The file holds no image, or one in colour, with several frames or more than 16
            bits; nothing decodes its transfer syntax; it is damaged or cut off.
        MissingDecoderError: What decodes its transfer syntax is not installed.
    """
    file = _of_pydicom(pydicom.dcmread, BytesIO(data), force=True)
    _check(file)
    header = _of_pydicom(header_of, file)
    pixels, notes = _of_pydicom(_grey, file)
    return pixels, replace(header, contradictions=(*header.contradictions, *notes))


def _is_bare(data: bytes) -> bool:
    """Whether the bytes begin with an element of group 2 or 8 of a data set."""
    if data[:1] == b"\x00":  # big endian
        return data[1:2] in (b"\x02", b"\x08") and data[4:6].isalpha() and data[4:6].isupper()
    if data[:2] not in (b"\x02\x00", b"\x08\x00") or len(data) < 8:
        return False
    is_explicit = data[4:6].isalpha() and data[4:6].isupper()
    return is_explicit or int.from_bytes(data[4:8], "little") <= 64


def _of_pydicom(work: Callable[..., Any], *values: Any, **options: Any) -> Any:
    """Do what pydicom does, whose errors are of any kind."""
    try:
        return work(*values, **options)
    except (DicomError, MemoryError, OSError):
        raise
    except Exception as error:
        how = "cut off" if text(error).startswith("End of file") else "damaged"
        raise DicomError(f"the DICOM file is {how}: {text(error)}") from error


def _check(file: pydicom.FileDataset) -> None:
    if "PixelData" not in file:
        raise DicomError(_without_image(file))
    frames = str(value(file, "NumberOfFrames") or "1")
    colours = value(file, "PhotometricInterpretation")
    bits = value(file, "BitsAllocated")
    if frames != "1":
        raise DicomError(f"needs one frame; has {frames}")
    if colours not in ("MONOCHROME1", "MONOCHROME2"):
        has = colours or "none"
        raise DicomError(f"needs photometric interpretation MONOCHROME1 or 2; has {has}")
    if not bits or bits > 16:
        raise DicomError(f"needs at most 16 bits per pixel; has {bits}")
    if not file.file_meta.get("TransferSyntaxUID"):
        implicit, little = file.original_encoding
        plain = uids.ImplicitVRLittleEndian if implicit else uids.ExplicitVRLittleEndian
        file.file_meta.TransferSyntaxUID = plain if little else uids.ExplicitVRBigEndian
    syntax = file.file_meta.TransferSyntaxUID
    if syntax in _DECODED_BY_EXTRA and not get_decoder(syntax).is_available:
        raise MissingDecoderError(
            f"{syntax.name} ({syntax}) needs a decoder: pip install 'surgical-aggregation[dicom]'"
        )


def _without_image(file: pydicom.FileDataset) -> str:
    """Say what a DICOM file without pixels is."""
    uid = value(file, "SOPClassUID") or file.file_meta.get("MediaStorageSOPClassUID")
    kind = uids.UID(uid).name if uid else "of unknown kind"
    if "Image Storage" in kind:
        return f"the DICOM file ({kind}) has no pixels; is it cut off?"
    modality = value(file, "Modality")
    return f"the DICOM file holds no image: {kind}" + (f", modality {modality}" if modality else "")


def _cells(file: pydicom.FileDataset) -> np.ndarray:
    """Pixels as they are in the file."""
    syntax = file.file_meta.TransferSyntaxUID
    if syntax in _LOSSLESS:
        _check_jpeg(next(generate_frames(file.PixelData, number_of_frames=1)), file)
    # What Pillow can decode is the same wherever other decoders are installed.
    plugin = "pillow" if "pillow" in get_decoder(syntax).available_plugins else ""
    # Else pydicom would cut values off, and without a look at where they end.
    options = {} if _is_coded(file) else {"bits_stored": file.BitsAllocated}
    return pixel_array(file, decoding_plugin=plugin, **options)


def _is_coded(file: pydicom.FileDataset) -> bool:
    """Whether pixels are compressed as values, not as the cells that hold them."""
    syntax = file.file_meta.TransferSyntaxUID
    return bool(syntax.is_encapsulated) and syntax != uids.RLELossless


def _stored(file: pydicom.FileDataset) -> tuple[np.ndarray, tuple[str, ...]]:
    """Values, which are some bits of each cell; and a note where other bits are unexplained."""
    bits = file.BitsStored
    if not 1 <= bits <= file.BitsAllocated:
        raise DicomError(f"needs 1 to {file.BitsAllocated} bits stored; has {bits}")
    high = bits - 1 if misplaced(file) else file.get("HighBit", bits - 1)
    if high != bits - 1 and _is_coded(file):
        raise DicomError(f"needs high bit {bits - 1} where pixels are compressed; has {high}")
    cells = _cells(file)
    spare = 8 * cells.itemsize - 1 - high
    values = cells << spare >> spare + high + 1 - bits  # a sign is the highest stored bit
    above = cells >> high >> 1
    beyond = ((above != 0) & (above != -1)).any()
    has_overlay = any((group, 0x0102) in file for group in range(0x6000, 0x6020, 2))
    return values, (f"values beyond its {bits} bits",) if beyond and not has_overlay else ()


def _check_jpeg(frame: bytes, file: pydicom.FileDataset) -> None:
    """Refuse a JPEG with a damaged header, at which gdcm would end the process."""
    segments, at = {}, 2
    while frame[at] == 0xFF and (marker := frame[at + 1]) != 0xDA:  # start of scan
        length = int.from_bytes(frame[at + 2 : at + 4], "big")
        segments[marker] = frame[at + 4 : at + 2 + length]
        at += 2 + length
    codes = segments.get(0xC4) or 0xF7 in segments  # JPEG-LS has none
    start = next((segments[each] for each in (0xC0, 0xC1, 0xC3, 0xF7) if each in segments), b"")
    if not codes or start[:1] > b"\x10" or start[1:5] != pack(">HH", file.Rows, file.Columns):
        raise DicomError("the JPEG's header is damaged")


def _grey(file: pydicom.FileDataset) -> tuple[np.ndarray, tuple[str, ...]]:
    try:
        stored, notes = _stored(file)
    except Exception as error:
        name = file.file_meta.TransferSyntaxUID.name
        raise DicomError(f"its pixels cannot be decoded ({name}): {text(error)}") from error
    codes = stored.view(f"u{stored.itemsize}")
    # Grey depends on the stored value alone, so it is computed once for each possible value.
    values = np.arange(256**stored.itemsize, dtype=codes.dtype).view(stored.dtype).astype(np.int64)
    padding = _padding(file, values)
    present = (np.bincount(codes.ravel(), minlength=len(values)) > 0) & ~padding
    light = _light(file, values, present)
    if file.PhotometricInterpretation == "MONOCHROME1":
        light = 1 - light
    light[padding] = 0
    return np.rint(255 * light).astype(np.uint8)[codes], notes


def _padding(file: pydicom.FileDataset, values: np.ndarray) -> np.ndarray:
    """Which stored values stand for no image at all."""
    one = file.get("PixelPaddingValue")
    if one is None:
        return np.zeros(values.shape, bool)
    other = file.get("PixelPaddingRangeLimit", one)
    signed, bits = bool(file.PixelRepresentation), file.BitsStored
    ends = sorted(_resigned(end, signed, bits) for end in (one, other))
    return (values >= ends[0]) & (values <= ends[1])


def _resigned(value: int, signed: bool, bits: int = 16) -> int:
    """A value of the header, of `bits` or 16 bits, that was written with or without sign."""
    if signed and value >= 2 ** (bits - 1):
        return value - (2**bits if value < 2**bits else 2**16)
    return value if signed else value % 2**16


def _describe(table: pydicom.Dataset, signed: bool) -> None:
    """Correct the descriptor of a lookup table, whose inputs are signed or not."""
    entries, start, _ = table.LUTDescriptor
    right = [entries % 2**16, _resigned(start, signed), 16]  # pydicom has other depths wrong
    table["LUTDescriptor"] = DataElement("LUTDescriptor", "US", right, validation_mode=IGNORE)


def _light(file: pydicom.FileDataset, values: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Brightness of each stored value, 0 to 1, before any inversion."""
    signed, bits = bool(file.PixelRepresentation), file.BitsStored
    if file.get("RescaleSlope") == 0:
        del file.RescaleSlope
    for table in file.get("ModalityLUTSequence") or ():
        _describe(table, signed)
    shown = apply_modality_lut(values, file).astype(float)
    ends = np.sort(shown[present])
    if file.get("VOILUTSequence"):
        table = file.VOILUTSequence[0]
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
        _describe(table, shown[(values >= least) & (values < most)].min() < 0)
        entries, start, _ = table.LUTDescriptor
        domain = np.arange(start, start + (entries or 2**16))
        inside = np.rint(shown).astype(int).clip(domain[0], domain[-1])
        shown = apply_voi_lut(inside, file).astype(float)
        ends = np.sort(apply_voi_lut(domain, file).astype(float))
    elif (window_width(file) or 0) >= 1:
        with np.errstate(over="ignore"):  # at the far ends of a sigmoid
            shown = apply_voi_lut(np.append(shown, (-_FAR, _FAR)), file)
        shown, ends = shown[:-2], shown[-2:]
    if not ends.size or ends[0] == ends[-1]:
        return np.zeros(values.shape)
    return ((shown - ends[0]) / (ends[-1] - ends[0])).clip(0, 1)

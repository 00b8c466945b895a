"""DICOM headers of many kinds, and the grey levels that dcmtk's dcm2pnm shows them in.

PYTHONPATH=custom python tests/support/dicom_matrix.py     # rewrites the csv; needs dcmtk
"""

import csv
import subprocess
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dicom_files import dataset, lut, written

LEVELS = Path(__file__).parents[1] / "cxr_study/data/images/dcm2pnm_levels.csv"

PIXELS = {"u8": 8, "u12": 12, "u16": 16, "s12": 12, "s16": 16}
HIGH_BITS = {"": 0, "high13": 2, "high15": 4, "low": -1, "overlay": 0}
SCALES = {"": {}, "slope2": {"RescaleSlope": 2, "RescaleIntercept": -1000},
          "slope0": {"RescaleSlope": 0, "RescaleIntercept": 7}}  # fmt: skip
VOI = ("", "window", "exact", "sigmoid", "width0", "width0.5", "lutUS", "lutSS", "mlutUS", "mlutSS")
SHOWN = ("", "MONOCHROME1", "MONOCHROME1 INVERSE", "MONOCHROME1 IDENTITY", "INVERSE")
NOTED = {
    "low": "high bit 10 with 12 bits stored",
    "slope0": "rescale slope 0",
    "width0": "window width 0",
    "width0.5": "window width 0.5",
    "MONOCHROME1 IDENTITY": "presentation LUT shape IDENTITY in MONOCHROME1",
    "INVERSE": "presentation LUT shape INVERSE in MONOCHROME2",
}
"""Part of a case's name -> what its file is noted for."""

OTHERWISE = ("low", "MONOCHROME1 IDENTITY", "INVERSE")
"""What dcm2pnm refuses, or shows against its photometric interpretation."""


def cases():
    """Name, its parts, and the file of each case."""
    for parts in product(PIXELS, HIGH_BITS, SCALES, VOI, SHOWN):
        kind, high, scale, voi, shown = parts
        odd = [part for part in (high, scale, shown) if part]
        if len(odd) > 1 or (high and "12" not in kind) or (scale and voi.startswith("mlut")):
            continue
        if odd and voi not in ("", "window", "lutUS", "mlutUS"):
            continue
        yield " ".join(filter(None, parts)), parts, written(_file(*parts))


def _file(kind, high, scale, voi, shown):
    bits, is_signed = PIXELS[kind], kind.startswith("s")
    least, shift = -(2 ** (bits - 1)) if is_signed else 0, HIGH_BITS[high]
    values = np.linspace(least, least + 2**bits - 1, 14).round().astype(int)
    cells = values << max(shift, 0)
    if high == "overlay":
        cells = (cells & 0xFFF) | 0x5000 * (np.arange(14) % 2)
    pixels = cells.astype(f"<u{1 if bits == 8 else 2}")
    file = dataset(pixels, BitsStored=bits, HighBit=bits - 1 + shift, **SCALES[scale])
    file.PixelRepresentation = int(is_signed)
    if high == "overlay":
        file.add_new(0x60000102, "US", 12)
    slope, start = (2, -1000) if scale == "slope2" else (1, 0)
    low, span = slope * least + start, slope * 2**bits
    if voi in ("window", "exact", "sigmoid") or voi.startswith("width"):
        width = float(voi[5:]) if voi.startswith("width") else span // 2
        file.WindowCenter, file.WindowWidth = low + span // 2, width
        file.VOILUTFunction = {"exact": "LINEAR_EXACT", "sigmoid": "SIGMOID"}.get(voi, "LINEAR")
    elif voi:
        first = least if voi.startswith("m") else low + span // 4
        first = first % 2**16 if voi.endswith("US") else (first + 2**15) % 2**16 - 2**15
        entries = 2 ** min(bits, 12)
        table = lut([4095 * entry // (entries - 1) for entry in range(entries)], first, 12)
        table[0]["LUTDescriptor"].VR = voi[-2:]
        setattr(file, "ModalityLUTSequence" if voi.startswith("m") else "VOILUTSequence", table)
    for word in shown.split():
        keyword = "PhotometricInterpretation" if word == "MONOCHROME1" else "PresentationLUTShape"
        setattr(file, keyword, word)
    return file


def dcm2pnm(data, voi):
    """The grey levels of a file as dcmtk shows them, by spaces; "" where it refuses."""
    how = ("+Wl" if voi.startswith("lut") else "+Wi", "1")
    how = ("+Wm",) if not voi or voi.startswith("mlut") else how
    with TemporaryDirectory() as folder:
        file, shown = Path(folder, "a.dcm"), Path(folder, "a.pgm")
        file.write_bytes(data)
        subprocess.run(["dcm2pnm", "-q", "-O", *how, "+opb", file, shown], check=False)
        lines = shown.read_text().splitlines() if shown.exists() else []
    return " ".join(" ".join(line for line in lines if not line.startswith("#")).split()[4:])


def read_levels():
    """Name of each case -> its grey levels, by spaces."""
    with LEVELS.open(newline="") as file:
        return dict(csv.reader(file))


if __name__ == "__main__":
    with LEVELS.open("w", newline="") as file:
        rows = ((name, dcm2pnm(data, parts[3])) for name, parts, data in cases())
        csv.writer(file, lineterminator="\n").writerows(rows)

"""DICOM files of a few pixels."""

from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian


def dataset(pixels, syntax=ExplicitVRLittleEndian, **elements):
    pixels = np.atleast_2d(pixels)
    file = Dataset()
    file.file_meta = FileMetaDataset()
    file.file_meta.TransferSyntaxUID = syntax
    file.SOPClassUID, file.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.1.1", "1.2.3"
    file.Rows, file.Columns = pixels.shape
    file.SamplesPerPixel = 1
    file.PhotometricInterpretation = "MONOCHROME2"
    file.BitsAllocated = 8 * pixels.itemsize
    file.BitsStored = file.BitsAllocated if pixels.itemsize == 1 else 12
    file.HighBit = file.BitsStored - 1
    file.PixelRepresentation = int(pixels.dtype.kind == "i")
    file.PixelData = pixels.tobytes() + b"\0" * (pixels.nbytes % 2)
    for name, value in elements.items():
        setattr(file, name, value)
    return file


def written(file):
    data = BytesIO()
    file.save_as(data, enforce_file_format=True)
    return data.getvalue()


def encoded(file, syntax):
    """The bytes of a file whose pixels gdcm has compressed."""
    gdcm = pytest.importorskip("gdcm")
    with TemporaryDirectory() as folder:
        path = f"{folder}/a.dcm"
        Path(path).write_bytes(written(file))
        reader, writer = gdcm.ImageReader(), gdcm.ImageWriter()
        reader.SetFileName(path)
        assert reader.Read()
        change = gdcm.ImageChangeTransferSyntax()
        change.SetTransferSyntax(gdcm.TransferSyntax(gdcm.TransferSyntax.GetTSType(syntax)))
        change.SetInput(reader.GetImage())
        assert change.Change()
        writer.SetFileName(path)
        writer.SetFile(reader.GetFile())
        writer.SetImage(change.GetOutput())
        assert writer.Write()
        return Path(path).read_bytes()


def lut(entries, first=0, bits=16):
    item = Dataset()
    item.LUTDescriptor = [len(entries) % 2**16, first, bits]
    item.LUTData = np.array(entries, "<u2").tobytes()
    item["LUTDescriptor"].VR, item["LUTData"].VR = "US", "OW"
    return [item]

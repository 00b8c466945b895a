"""A hospital's csv names images by a number of their DICOM headers."""

import shutil

import numpy as np
import pytest

from cxr_studies.plan.site_files import write_copy
from cxr_study.common.errors import InputError
from cxr_study.data.labels.label_table import assemble
from cxr_study.data.sites.own_table import join
from cxr_study.data.sites.site_data import load_images, load_labels
from cxr_study.data.sites.site_file import read_site_file
from dicom_files import dataset, written
from typed import answer

COMMAND = ("data", "site", "table", "klinik", "sites/klinik.yaml", "--column", "Nr=image")


@pytest.fixture
def hospital(cache, tmp_path, monkeypatch):
    """Studies 000 to 020, of a PA and a lateral image each, and what else is in an export."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "klinik/x"
    folder.mkdir(parents=True)
    for n, pixels in enumerate(np.random.default_rng(0).integers(0, 4096, (43, 16, 16), np.uint16)):
        file = dataset(pixels, AccessionNumber=f"{n // 2:03d}", ViewPosition=("PA", "LL")[n % 2])
        if n in (0, 42):
            del file.ViewPosition
        if n == 42:  # a report
            file.AccessionNumber = "000"
            del file.PixelData, file.Rows, file.Columns
        (folder / f"1.2.{100 + n}").write_bytes(written(file))
    rows = [f"{n:03d},p{n},{n % 2}\n" for n in (*range(20), 99)]
    (folder.parent / "a.csv").write_text("Nr,patient,Edema\n" + "".join(rows))
    return folder.parent


def test_each_image_of_a_number_has_its_labels_and_the_view_of_its_header(hospital):
    output = answer(*COMMAND, "--images-by", "AccessionNumber")
    for part in (
        "view       from each header",
        "images     42 with a DICOM AccessionNumber below klinik: sites/klinik_images.csv; ",
        "not used: 1 files (not a DICOM file), first a.csv; not used: 1 files (no image, or no Acc",
        "note       1 AccessionNumber of the labels match no image, first 099",
        "note       2 images have no row of labels with their AccessionNumber, first x/1.2.140",
        "note       1 images have no known view, first x/1.2.100, and are left out; ",
        "19 of 19 images usable",
    ):
        assert part in output
    site = read_site_file(hospital.parent / COMMAND[4])
    labels = load_labels(site)
    assert labels.read["view"].value_counts().to_dict() == {"lateral": 20, "PA": 19, "": 1}
    edema = labels.read.groupby("patient")["Edema"].agg(tuple)
    assert edema[["p2", "p3"]].tolist() == [(0, 0), (1, 1)]
    assert len(load_images(labels, 64).rows) == 19
    write_copy(site, hospital / "copy.yaml", ["Edema"], site.split)
    shutil.rmtree(hospital / "x")  # so no header can be read again
    assert load_labels(read_site_file(hospital / "copy.yaml")).read.equals(labels.read)


def test_a_file_that_changed_after_its_header_was_read_is_refused_by_name(hospital):
    answer(*COMMAND, "--images-by", "AccessionNumber", "--no-prepare")
    site = read_site_file(hospital.parent / COMMAND[4])
    load_labels(site)
    file = hospital / "x/1.2.107"
    other = dataset(np.eye(16, dtype=np.uint16), AccessionNumber="004", ViewPosition="LL")
    file.write_bytes(written(other))
    message = r"line 9, column 'image': 'x/1\.2\.107' has changed since .* --images-by AccessionN"
    with pytest.raises(InputError, match=message):
        load_labels(site)


@pytest.mark.parametrize(("keyword", "number", "message"), [
    ("AccessionNumber", "1", "first AccessionNumber '000', is one of the 1 of the labels"),
    ("StudyInstanceUID", "000", "klinik needs images with a DICOM StudyInstanceUID"),
    ("Accession", "000", "'Accession' is not a DICOM keyword, such as AccessionNumber"),
])  # fmt: skip
def test_numbers_without_an_image_leave_nothing(hospital, keyword, number, message):
    (hospital / "a.csv").write_text(f"Nr,patient,Edema\n{number},1,1\n")
    assert message in answer(*COMMAND, "--images-by", keyword, code=2)
    assert not list(hospital.parent.glob("sites/*"))


def test_a_view_of_the_table_counts_and_a_blank_one_is_the_headers(tmp_path):
    index = tmp_path / "index.csv"
    rows = "02,b.dcm,lateral,9,9\n01,a.dcm,PA,9,9\n01,c.dcm,lateral,9,9\n"
    index.write_text(f"Nr,image,view,bytes,mtime_ns\n{rows}")
    table = assemble({}, image=["01", "02"], patient=["7", "8"], view=["AP", ""])
    joined = join(table, index, tmp_path)
    assert joined["image"].tolist() == ["a.dcm", "c.dcm", "b.dcm"]
    assert joined["view"].tolist() == ["AP", "AP", "lateral"]

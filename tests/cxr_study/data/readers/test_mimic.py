import numpy as np
import pytest

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES
from cxr_study.data.readers import mimic
from downloads import OFFICIAL, cells_of, read_rewritten

LABELS = cells_of(OFFICIAL["mimic"].files[0])[0][:-1]
BY_HAND = ["Airspace Opacity" if name == "Lung Opacity" else name for name in LABELS[1:]]
OTHER = {"subject_id": "12345678", "study_id": "51000000"}


@pytest.fixture
def read(tmp_path):
    def read(studies, images, header=None):
        return read_rewritten(tmp_path, "mimic", *studies, images=images, header=header)

    return read


def test_all_images_of_a_study_have_its_labels_in_the_order_of_the_metadata(read):
    table = read(
        [{**OTHER, "Edema": "0.0"}, {"Edema": "-1.0", "Fracture": "1"}],
        [{"dicom_id": "b"}, {"dicom_id": "c", **OTHER}, {"dicom_id": "a", "ViewPosition": "LL"}],
    )
    assert table["Edema"].tolist() == [UNCERTAIN, NEGATIVE, UNCERTAIN]
    assert table["Fracture"].tolist() == [POSITIVE, BLANK, POSITIVE]
    assert table["image"].str[-5:].tolist() == ["b.jpg", "c.jpg", "a.jpg"]


def test_images_of_an_examination_without_labels_are_not_labelled(read):
    table = read([{"Edema": "1"}], [{"dicom_id": "b", **OTHER}, {}])
    np.testing.assert_equal(table["Edema"].to_numpy(), [np.nan, 1])
    assert table.loc[0, list(CHEXPERT_CLASSES)].isna().all()


def test_labels_by_hand_name_no_patient_have_an_airspace_opacity_and_only_their_images_count(read):
    rows = [{"Airspace Opacity": "1.0", "Edema": ""}]
    table = read(rows, [{"dicom_id": "b", **OTHER}, {}], BY_HAND)
    assert table["image"].tolist() == ["files/p10/p10000032/s50414267/02aa-1.jpg"]
    assert table.index.tolist() == [0]
    assert table.loc[0, ["Lung Opacity", "Edema"]].tolist() == [POSITIVE, BLANK]


@pytest.mark.parametrize(
    ("view", "positions"),
    [
        *(("PA", ["PA"]), ("AP", ["AP"]), ("", [""])),
        ("lateral", ["LATERAL", "LL", "RL", "XTABLE LATERAL"]),
        ("other", ["AP AXIAL", "PA LLD", "LPO"]),
    ],
)
def test_decubitus_axial_and_oblique_pictures_are_other_and_a_missing_position_unknown(
    view, positions
):
    assert {mimic.view(position) for position in positions} == {view}


@pytest.mark.parametrize(
    ("studies", "images", "message"),
    [
        ([{}, {}], [{}], r"labels\.csv, line 3, column 'study_id': '50414267' stands in line 2"),
        ([{}, OTHER], [{}], r"labels\.csv, line 3, column 'study_id': study 51000000 has no image"),
        ([{"subject_id": "12345678"}], [{}],
         r"labels\.csv, line 2, column 'subject_id': study 50414267 is of patient 10000032; got"),
        ([{}], [{}, {"dicom_id": "b", "subject_id": "12345678"}],
         r"metadata\.csv, line 3, column 'subject_id': study 50414267 is of patient"),
        ([{}], [{}, {}], r"metadata\.csv, line 3, column 'dicom_id': '02aa-1' stands in line 2"),
        ([{}], [{"study_id": "50414267.0"}], r"line 2, column 'study_id': needs a number, digits"),
        ([{}], [{"subject_id": "1e7"}], "column 'subject_id': needs a number"),
        ([{}], [{"dicom_id": "a/b"}], "column 'dicom_id': needs the name of an image; got 'a/b'"),
        ([{"Edema": "2"}], [{}], "column 'Edema': needs 1, 0, -1 or a blank; got '2'"),
    ],
)  # fmt: skip
def test_tables_that_do_not_belong_together_are_refused(read, studies, images, message):
    with pytest.raises(TableError, match=message):
        read(studies, images)
    with pytest.raises(TableError, match="line 1: needs a column 'subject_id'"):
        read([{}], [{}], header=LABELS[1:])


@pytest.fixture
def split(tmp_path):
    def read_rows(*rows):
        path = tmp_path / "mimic-cxr-2.0.0-split.csv"
        path.write_text("\n".join(["dicom_id,study_id,subject_id,split", *rows]) + "\n")
        return mimic.official_split(path)

    return read_rows


def test_the_official_split_is_one_of_patients(split):
    table = split("a,1,10,train", "b,1,10,train", "c,2,09,test", "d,3,11,validate")
    assert table.to_dict("list") == {
        "patient": ["10", "09", "11"],
        "split": ["train", "test", "validation"],
    }


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("b,2,10,test", "line 3, column 'split': patient 10 is in 'train' already"),
        ("b,2,11,val", "line 3, column 'split': needs train, validate or test; got 'val'"),
        ("b,2,,test", "line 3, column 'subject_id': needs a number"),
    ],
)
def test_a_split_with_a_patient_in_two_is_refused(split, row, message):
    with pytest.raises(TableError, match=message):
        split("a,1,10,train", row)

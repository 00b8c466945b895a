"""What is particular to the csv files of each data set."""

from pathlib import Path

import numpy as np
import pytest

from cxr_study.common.errors import InputError
from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES
from cxr_study.data.readers import DATASETS, chexpert, cxr_lt, mimic, nih, padchest, table, vindr
from downloads import NAN, OFFICIAL, cells_of

METADATA = Path(__file__).parents[4].parent / "shared/data/nih-metadata"
OTHER = {"subject_id": "12345678", "study_id": "51000000"}  # an examination of MIMIC's


def header_of(dataset):
    return cells_of(OFFICIAL[dataset].files[0])[0]


def positive(labels):
    return [[name for name in labels.columns[5:] if row[name] == 1] for _, row in labels.iterrows()]


def test_nih_commas_in_the_header_or_at_the_end_of_the_lines_shift_no_column(read):
    rows = {"Image Index": "b", "Finding Labels": "Effusion|Pleural_Thickening|Mass"}, {}
    rows[1].update({"Image Index": "c", "Finding Labels": "No Finding", "Patient Sex": "F"})
    header = header_of("nih")
    sex = ["Patient Sex" if name == "Patient Gender" else name for name in header]
    for names in (header, header[:-1], header[::-1], sex):
        labels = read(nih, {"Patient Sex": "M"}, *rows, header=names)
        assert labels.iloc[0, :5].tolist() == ["00000001_000.png", "1", "PA", "M", 58.0]
        second = ["Mass", "Pleural Effusion", "Pleural Thickening"]
        assert positive(labels) == [["Cardiomegaly", "Pleural Effusion"], second, []]
        assert labels[list(NIH_CLASSES)].isin([0, 1]).all(axis=None)
    assert labels["sex"][2] == "F"  # some copies call the column so


def test_chexpert_columns_may_stand_in_another_order_and_the_test_set_has_labels_only(read):
    row, header = {"Edema": "1", "Fracture": "0", "No Finding": "-1"}, header_of("chexpert")
    turned = read(chexpert, row, header=[*header[:5], *header[6:], "No Finding"])
    assert turned.equals(read(chexpert, row))
    assert tuple(turned.columns[5:]) == CHEXPERT_CLASSES
    frontal = "test/patient64741/study1/view1_frontal.jpg"
    rows = {"Path": frontal, "Edema": "1.0"}, {"Path": frontal.replace("1_frontal", "2_lateral")}
    tested = read(chexpert, *rows, header=["Path", *header[6:]])
    assert tested["patient"].tolist() == ["patient64741"] * 2 and tested["age"].isna().all()
    found = tested[["view", "sex", "Edema"]].to_numpy().tolist()
    assert found == [["frontal", "", POSITIVE], ["lateral", "", BLANK]]


def test_mimic_images_have_the_labels_of_their_examination_in_the_order_of_the_metadata(read):
    studies = {**OTHER, "Edema": "0.0"}, {"Edema": "-1.0", "Fracture": "1"}
    images = [{"dicom_id": "b"}, {"dicom_id": "c", **OTHER}, {"dicom_id": "a"}]
    labels = read(mimic, *studies, images=images)
    assert labels["Edema"].tolist() == [UNCERTAIN, NEGATIVE, UNCERTAIN]
    assert labels["Fracture"].tolist() == [POSITIVE, NEGATIVE, POSITIVE]  # "No Finding"
    assert labels["image"].str[-5:].tolist() == ["b.jpg", "c.jpg", "a.jpg"]
    labels = read(mimic, {"Edema": "1"}, images=[{"dicom_id": "b", **OTHER}, {}])
    np.testing.assert_equal(labels["Edema"].to_numpy(), [NAN, 1])
    assert labels.loc[0, list(CHEXPERT_CLASSES)].isna().all()  # an examination without labels


def test_mimic_labels_by_hand_call_lung_opacity_otherwise_and_only_their_images_count(read):
    header = [name.replace("Lung O", "Airspace O") for name in header_of("mimic")[1:]]
    row, images = {"Airspace Opacity": "1.0", "Edema": ""}, [{"dicom_id": "b", **OTHER}, {}]
    labels = read(mimic, row, images=images, header=header)
    assert labels["image"].to_dict() == {0: "files/p10/p10000032/s50414267/02aa-1.jpg"}
    assert labels.loc[0, ["Lung Opacity", "Edema"]].tolist() == [POSITIVE, BLANK]


@pytest.mark.parametrize(("image", "message"), [
    ({"dicom_id": "b", "subject_id": "12345678"}, "study 50414267 is of patient 10000032; got"),
    ({}, "column 'dicom_id': '02aa-1' is already in line 2"),
    ({"dicom_id": "b", "study_id": "50414267.0"}, "column 'study_id': needs a number, digits"),
    ({"dicom_id": "b", "subject_id": "1e7"}, "column 'subject_id': needs a number"),
    ({"dicom_id": "a/b"}, "column 'dicom_id': needs the name of an image; got 'a/b'"),
])  # fmt: skip
def test_mimic_metadata_that_contradict_the_labels_are_refused(read, image, message):
    with pytest.raises(InputError, match=rf"metadata\.csv, line 3, .*{message}"):
        read(mimic, {}, images=[{}, image])


LEADING = header_of("cxr-lt")[:5]
IMAGE = "files/p10/p10000032/s50414267/02aa.jpg"
NEW = "A finding of 2031"


@pytest.mark.parametrize(("header", "classes"), [
    ([*LEADING, "path", "Edema", "Mass", "No Finding"], ["Edema", "Mass"]),
    ([*LEADING, "fpath", "Mass", "Normal", "Round(ed) Atelectasis"],
     ["Mass", "Round(ed) Atelectasis"]),
    ([*LEADING, "fpath", "split", "Mass", NEW], ["Mass", NEW]),
])  # fmt: skip
def test_cxr_lt_whatever_does_not_describe_the_image_is_a_class(read, header, classes):
    row = dict.fromkeys((*header[6:], "Mass"), "0") | {"path": IMAGE, "Mass": "1"}
    labels, turned = read(cxr_lt, row, header=header), read(cxr_lt, row, header=header[::-1])
    assert labels.columns[5:].tolist() == classes
    assert labels.iloc[0, :4].tolist() == [IMAGE, "10000032", "AP", ""]
    assert positive(labels) == [["Mass"]]
    assert turned[labels.columns].equals(labels)


def votes(image, *readers):
    """The three lines of an image, a list of findings for each radiologist."""
    zeros = dict.fromkeys(header_of("vindr")[2:], "0")
    return [
        {"image_id": image, "rad_id": f"R{i}"} | zeros | dict.fromkeys(findings, "1")
        for i, findings in enumerate(readers, start=8)
    ]


def test_vindr_training_labels_are_what_two_of_three_radiologists_say(read):
    edema, copd, none = ["Edema", "COPD"], ["COPD", "ILD"], ["No finding"]
    rows = [*votes("a", edema, copd, none), *votes("b", none, edema, edema)]
    labels = read(vindr, *rows)
    assert tuple(labels.columns[5:]) == DATASETS["vindr"].classes
    assert labels.iloc[0, :4].tolist() == ["a", "a", "PA", ""]
    assert positive(labels) == [["COPD"], ["Edema", "COPD"]]
    mixed = read(vindr, *rows[::2], *rows[1::2])  # the lines of an image need not be neighbours
    assert positive(mixed.sort_values("image")) == positive(labels)
    for bad, message in (
        (rows[:2], "line 2, column 'image_id': image 'a' has 2 readers; a training"),
        ([*rows[:3], rows[0] | {"rad_id": "R11"}], "column 'image_id': image 'a' has 4 readers"),
        (rows[:2] + rows[:1], "line 4, column 'rad_id': 'R8' has read image 'a' in an earlier"),
    ):
        with pytest.raises(InputError, match=message):
            read(vindr, *bad)


def test_vindr_test_labels_have_a_line_per_image_and_names_that_mean_the_same_are_canonical(read):
    header = [name.replace("diseases", "disease") for name in header_of("vindr")]
    header.remove("rad_id")
    present = ["Pleural effusion", "Pulmonary fibrosis", "Nodule/Mass", "Other disease"]
    (first,), (second,) = votes("0f", present), votes("00", [])
    labels = read(vindr, first, second | {"Other disease": "0"}, header=header)
    assert labels["image"].tolist() == ["0f", "00"]
    named = ["Nodule/Mass", "Pleural Effusion", "Fibrosis", "Other diseases"]
    assert positive(labels) == [named, []]
    assert {"Clavicle fracture", "Rib fracture", "Other lesion"} < set(labels.columns)
    assert not {"Fracture", "Nodule", "Mass", "Lung Lesion", "No finding"} & set(labels.columns)
    with pytest.raises(InputError, match="line 3, column 'image_id': '0f' is already in line 2"):
        read(vindr, *[first] * 2, header=header)


@pytest.mark.parametrize(("lists", "labels"), [
    # Every finding that occurs is a class, and absent elsewhere.
    (["['goiter']", "['cardiomegaly']", "['normal']"],
     {"Cardiomegaly": [0, 1, 0], "goiter": [1, 0, 0]}),
    # It counts under its whole name only.
    (["['subcutaneous emphysema', 'breast mass']", "['mass']"],
     {"Mass": [0, 1], "Subcutaneous Emphysema": [1, 0], "breast mass": [1, 0]}),
    # Names that mean the same are one class, whatever their case.
    (["[' Cardiomegaly', 'cardiomegaly ', 'pulmonary edema', 'NSG tube']"],
     {"Cardiomegaly": [1], "Edema": [1], "NSG tube": [1]}),
    # A list that says nothing about findings is not labelled.
    *(([silent, "['goiter']"], {"goiter": [NAN, 1]})
     for silent in ("", "[]", "['']", "[' unchanged', 'suboptimal study']", "['Exclude']")),
    # A remark takes nothing from what else the list says.
    (["['normal', 'unchanged']", "['goiter']"], {"goiter": [0, 1]}),
    (["['unchanged', 'goiter']", "['mass']"], {"Mass": [0, 1], "goiter": [1, 0]}),
    (["['normal']", ""], {}),
])  # fmt: skip
def test_padchest_lists_of_findings_become_labels(read, lists, labels):
    rows = ({"ImageID": f"{i}.png", "Labels": text} for i, text in enumerate(lists))
    got = read(padchest, *rows)
    np.testing.assert_equal({name: got[name].tolist() for name in got.columns[5:]}, labels)
    assert (got.dtypes.iloc[5:] == np.float32).all()


def test_a_hospitals_own_table_needs_no_view_and_keeps_names_the_catalogue_does_not_know(read):
    names = ["PLEURAL_EFFUSION", "Effusion", "My one", "no_finding", "Normal"]
    row = dict.fromkeys((*names, "Image"), "1")
    got = read(table, row, header=["Edema", "Image", "patient", *names])
    assert list(got.columns[5:]) == ["Edema", "Pleural Effusion", "Effusion", "My one"]
    assert got[["view", "sex"]].to_numpy().tolist() == [["frontal", ""]] and got["age"].isna().all()
    assert read(table, {"view": ""})["view"].tolist() == [""]


@pytest.mark.parametrize(("train_val", "test", "message"), [
    ("a\nb\na\n", "c\n", r"train_val_list\.txt, line 3: 'a' is already in .*list\.txt, line 1"),
    ("a\n", "c\na\n", r"test_list\.txt, line 2: 'a' is already in .*train_val_list\.txt, line 1"),
    ("a\n", "", r"test_list\.txt is empty"),
    ("a\n\nb\n", "c\n", r"train_val_list\.txt, line 2: the line is blank"),
])  # fmt: skip
def test_nih_official_lists_are_a_partition_without_a_header(tmp_path, train_val, test, message):
    def lists(*texts):
        files = [tmp_path / f"{name}_list.txt" for name in ("train_val", "test")]
        for file, text in zip(files, texts, strict=True):
            file.write_bytes(text.encode())
        return nih.official_lists(*files)

    for start, end in (("", "\n"), ("", "\r\n"), ("\ufeff", "\n")):
        parts = lists(start + end.join(["b.png", "a.png", ""]), "c.png").to_dict("list")
        assert parts["image"] == ["b.png", "a.png", "c.png"]
        assert parts["part"] == ["train_val", "train_val", "test"]
    with pytest.raises(InputError, match=r"none\.txt cannot be read"):
        nih.official_lists(tmp_path / "none.txt", tmp_path / "none.txt")
    with pytest.raises(InputError, match=message):
        lists(train_val, test)


def test_mimic_official_split_is_one_of_patients(tmp_path):
    def split(*rows):
        path = tmp_path / "mimic-cxr-2.0.0-split.csv"
        path.write_text("\n".join(["dicom_id,study_id,subject_id,split", *rows]) + "\n")
        return mimic.official_split(path)

    parts = split("a,1,10,train", "b,1,10,train", "c,2,09,test", "d,3,11,validate")
    assert parts["patient"].to_dict() == {0: "10", 1: "09", 2: "11"}
    assert parts["split"].tolist() == ["train", "test", "validation"]
    for row, message in (
        ("b,2,10,test", "line 3, column 'split': patient 10 is already in 'train'"),
        ("b,2,11,val", "line 3, column 'split': needs train, validate or test; got 'val'"),
        ("b,2,,test", "line 3, column 'subject_id': needs a number"),
    ):
        with pytest.raises(InputError, match=message):
            split("a,1,10,train", row)


@pytest.mark.data
@pytest.mark.skipif(not METADATA.is_dir(), reason=f"no NIH metadata in {METADATA}")
def test_the_official_files_have_the_official_counts_and_part_patients():
    table = nih.read(METADATA / "Data_Entry_2017_v2020.csv.gz")
    assert (len(table), table["patient"].nunique()) == (112_120, 30_805)
    assert table["view"].value_counts().to_dict() == {"PA": 67_310, "AP": 44_810}
    assert (table["age"].min(), table["age"].max()) == (0, 95)
    assert (table[list(NIH_CLASSES)].sum(axis=1) == 0).sum() == 60_361
    assert table[list(NIH_CLASSES)].sum().to_dict() == {
        "Infiltration": 19_894, "Pleural Effusion": 13_317, "Atelectasis": 11_559,
        "Nodule": 6_331, "Mass": 5_782, "Pneumothorax": 5_302, "Consolidation": 4_667,
        "Pleural Thickening": 3_385, "Cardiomegaly": 2_776, "Emphysema": 2_516, "Edema": 2_303,
        "Fibrosis": 1_686, "Pneumonia": 1_431, "Hernia": 227,
    }  # fmt: skip
    parts = nih.official_lists(METADATA / "train_val_list.txt", METADATA / "test_list.txt")
    assert parts["part"].value_counts().to_dict() == {"train_val": 86_524, "test": 25_596}
    assert sorted(parts["image"]) == sorted(table["image"])
    part = table["image"].map(parts.set_index("image")["part"])
    assert (table["patient"].groupby(part).nunique().sum()) == 30_805

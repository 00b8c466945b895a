"""What single cells and headers mean to each reader, and which are refused."""

from math import nan

import numpy as np
import pytest

from cxr_study.common.errors import InputError
from cxr_study.data import readers as data_sets
from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN, assemble
from cxr_study.data.readers import cell_values, chexpert, cxr_lt, mimic, nih, padchest, table, vindr
from downloads import OFFICIAL, PATIENTS, cells_of

LABELS = {"1": POSITIVE, "1.0": POSITIVE, "0.0": NEGATIVE, "-1.0": UNCERTAIN, "": BLANK}
VIEWS = {"PA": "PA", "": "", "LATERAL": "lateral", "LL": "lateral", "RL": "lateral"}
ODD_VIEWS = {"XTABLE LATERAL": "lateral"} | dict.fromkeys(("AP AXIAL", "PA LLD", "LPO"), "other")
PATHS = {f"{folder}patient7/study12/view3_frontal.jpg": "patient7"
         for folder in ("", "v1.0/valid/", "batch 2 (train 1)/")}  # fmt: skip


@pytest.mark.parametrize(("reader", "column", "field", "meanings"), [
    (nih, "Patient ID", "patient", {"00000013": "13", "13": "13", "0": "0"}),
    (nih, "Patient Age", "age", {"057": 57, "058Y": 58, "006M": 0.5, "073D": 0.2, "120": 120}),
    (nih, "Patient Age", "age", {"414": nan, "148Y": nan, "": nan}),
    (nih, "Patient Gender", "sex", {"": "", "F": "F"}),
    (nih, "View Position", "view", {"LL": "frontal", "AP": "AP"}),
    (chexpert, "Edema", "Edema", LABELS | {"": 0}),  # the row says No Finding
    (chexpert, "No Finding", "Edema", {"1.0": 0, "0": -2, "": -2, "-1": -2}),
    (chexpert, "AP/PA", "view", {"LL": "frontal", "RL": "frontal", "": "frontal", "PA": "PA"}),
    (chexpert, "Frontal/Lateral", "view", {"Lateral": "lateral"}),
    (chexpert, "Sex", "sex", {"Unknown": "", "Male": "M"}), (chexpert, "Path", "patient", PATHS),
    (cxr_lt, "ViewPosition", "view", VIEWS | ODD_VIEWS),
    (padchest, "Projection", "view", {"PA": "PA", "AP_horizontal": "AP", "L": "lateral"}),
    (padchest, "Projection", "view", {"COSTAL": "other", "EXCLUDE": "other", "UNK": "", "": ""}),
    (padchest, "PatientSex_DICOM", "sex", {"F": "F", "O": ""}),
    # Age is the year of the examination, 2014, less that of birth, where that is an age.
    (padchest, "PatientBirth", "age", {"1950": 64, "": nan, "2020": nan, "1800": nan}),
    (padchest, "StudyDate_DICOM", "age", {"": nan, "20140731": 64}),
    (table, "pleural_effusion", "Pleural Effusion", LABELS),
    (table, "age", "age", {"0": 0, "63.5": 63.5, "120": 120, "": nan, "121": nan}),
    (table, "image", "image", {r"p 1\.\1.png": "p 1/1.png", "./2.png": "2.png"}),
    (table, "patient", "patient", {"007": "007"}),
])  # fmt: skip
def test_cells_mean(read, reader, column, field, meanings):
    got = [read(reader, {column: text})[field][0] for text in meanings]
    np.testing.assert_equal(got, list(meanings.values()))


def test_no_finding_makes_blanks_negative_but_for_devices_and_rows_that_say_a_finding():
    rows = {"Normal": [1, 1, 0, 1], "Edema": [-2, -2, -2, np.nan], "Mass": [0, -1, -2, -2]}
    table = assemble(
        {name: np.array(column, float) for name, column in rows.items()}
        | {"Support Devices": np.full(4, -2.0)},
        **dict.fromkeys(("image", "patient"), np.array(list("abcd"))),
        view="PA",
    )
    spread = cell_values.apply_no_finding(table)
    np.testing.assert_equal(spread["Edema"].tolist(), [0, -2, -2, nan])
    assert spread["Mass"].tolist() == [0, -1, -2, 0]
    assert spread["Support Devices"].tolist() == [-2] * 4
    assert "Normal" not in spread
    assert spread.attrs["notes"] == [
        "2 images have Normal, their blank labels are negative (Support Devices aside)",
        "1 images have Normal, and a finding; their blanks stay blank",
    ]


IMAGE = f"{PATIENTS}1/study1/view1_frontal.jpg"
PATH = "files/p10/p10000032/s50414267/02aa.jpg"
SECOND = {
    nih: {"Image Index": "b.png"}, chexpert: {"Path": IMAGE.replace("view1", "view2")},
    mimic: {"subject_id": "10000764", "study_id": "57375967"}, vindr: {"image_id": "b"},
    cxr_lt: {"fpath": PATH.replace("02aa", "b")}, padchest: {"ImageID": "b.png"},
    table: {"image": "b.png"},
}  # fmt: skip
"""Reader -> a good second row."""
NO_LISTS = ["cardiomegaly", "['goiter'", "[nan]", "[1]", "('goiter',)", "[" * 10_000]
NO_LISTS += ["-" * 3_000 + "1", "{[]: 1}", r"['goi\ter']"]


@pytest.mark.parametrize(("reader", "bad", "message"), [
    (nih, {"Finding Labels": "Masss"}, "column 'Finding Labels': 'Masss' .*known: Mass"),
    (nih, {"Finding Labels": "Lung Opacity"}, "'Lung Opacity' is not an NIH finding"),
    (nih, {"Finding Labels": "No Finding|Mass"}, "'No Finding' is not an NIH finding"),
    (nih, {"Patient ID": "1.0"}, "column 'Patient ID': needs a number, .* got '1.0'"),
    (nih, {"Patient ID": "٦"}, "column 'Patient ID': needs a number, digits only"),
    (nih, {"Image Index": ""}, "column 'Image Index': the cell is blank"),
    (nih, {"Image Index": "00000001_000.png"}, "column 'Image Index': .* is already in line 2"),
    (nih, {"Patient Age": "old"}, "column 'Patient Age': needs a number of years"),
    (chexpert, {"Edema": "2"}, "column 'Edema': needs 1, 0, -1 or a blank; got '2'"),
    (chexpert, {"Path": "images/1.jpg"}, "column 'Path': needs a path that ends like patient0"),
    (chexpert, {"Path": IMAGE}, "column 'Path': .* is already in line 2"),
    (chexpert, {"Path": IMAGE.replace("-small", "")}, "'patient00001/study1/.* is already in"),
    (chexpert, {"AP/PA": "PPA"}, "column 'AP/PA': needs AP, PA, LL, RL or a blank; got 'PPA'"),
    (chexpert, {"Sex": "F"}, "column 'Sex': needs Female, Male, Unknown or a blank; got 'F'"),
    (chexpert, {"Frontal/Lateral": ""}, "needs Frontal or Lateral; got ''"),
    (mimic, {"study_id": "50414267"}, "column 'study_id': '50414267' is already in line 2"),
    (mimic, {"study_id": "51000000"}, "column 'study_id': study 51000000 has no image"),
    (mimic, {"subject_id": "12345678"}, "'subject_id': study 57375967 is of patient 10000764;"),
    (cxr_lt, {"Mass": ""}, "column 'Mass': needs 1 or 0; got ''"),
    (cxr_lt, {"fpath": PATH}, "column 'path': '02aa' is already in line 2"),
    (cxr_lt, {"fpath": "02aa.jpg"}, "needs a path that ends like p10/p10000032/s50414267"),
    (cxr_lt, {"subject_id": "10000033"}, "'subject_id': the path is of patient 10000032; got"),
    (vindr, {"image_id": ""}, "column 'image_id': the cell is blank"),
    (vindr, {"rad_id": ""}, "column 'rad_id': the cell is blank"),
    (vindr, {"ILD": "-1"}, "column 'ILD': needs 1 or 0; got '-1'"),
    *((padchest, {"Labels": text}, "column 'Labels': needs a list like") for text in NO_LISTS),
    (padchest, {"ImageID": "1_a.png"}, "column 'ImageID': '1_a.png' is already in line 2"),
    (padchest, {"ImageDir": "7.0"}, "column 'ImageDir': needs a number, digits only"),
    (padchest, {"PatientID": ""}, "column 'PatientID': the cell is blank"),
    (padchest, {"PatientBirth": "50"}, "column 'PatientBirth': needs a year, e.g. 1950; got"),
    (padchest, {"StudyDate_DICOM": "2014"}, "column 'StudyDate_DICOM': needs a date"),
    (table, {"image": "./p1/1.png", "My finding": "0"}, "My finding': got '0', but line 2 has"),
    *((table, {"image": text}, "column 'image': needs the path of a file below the images")
     for text in ("", "/b.png", r"C:\b.png", "../b.png")),
    (table, {"patient": ""}, "column 'patient': the cell is blank"),
    (table, {"view": "p.a."}, "column 'view': needs PA, AP, frontal, lateral, other or"),
    (table, {"sex": "w"}, "column 'sex': needs F, M or a blank; got 'w'"),
    *((table, {"age": text}, "column 'age': needs a number of years, e.g. 58 or")
     for text in ("nan", "inf", "-1", "1e1", "٦٣", "63X")),
    (table, {"My finding": "true"}, "column 'My finding': needs 1, 0, -1 or a blank"),
    (table, {"My finding": "0.5"}, "'My finding': numbers between 0 and 1 .* threshold: 0.5"),
    (table, {"My finding": "1.5"}, "column 'My finding': needs 1, 0, -1 or a blank"),
])  # fmt: skip
def test_a_bad_cell_is_refused_by_file_line_and_column(read, reader, bad, message):
    with pytest.raises(InputError, match=rf"labels\.csv, line 3, .*{message}"):
        read(reader, {}, SECOND[reader] | bad)


NIH, CHEXPERT, MIMIC, CXR_LT, VINDR, PADCHEST = (
    cells_of(OFFICIAL[name].files[0])[0]
    for name in ("nih", "chexpert", "mimic", "cxr-lt", "vindr", "padchest")
)
KAGGLE = "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max".split(",")


@pytest.mark.parametrize(("reader", "header", "message"), [
    (nih, [name for name in NIH if name != "Patient Gender"], "or 'Patient Sex'"),
    (chexpert, [name for name in CHEXPERT if name != "Sex"], "needs a column 'Sex'"),
    (chexpert, ["Study", *CHEXPERT[5:]], r"has 'Study'\. Labels of studies do not identify"),
    (mimic, MIMIC[1:], "needs a column 'subject_id'"),
    (cxr_lt, CXR_LT[:6], "needs columns with labels"),
    (cxr_lt, [*CXR_LT, "path"], "needs one column 'path' or 'fpath'"),
    (vindr, [name for name in VINDR if name != "ILD"], "needs a column 'ILD'"),
    (padchest, [name for name in PADCHEST if name != "Labels"], "a column 'Labels'"),
    (vindr, KAGGLE, r"boxes of Kaggle.*use PhysioNet's image_labels_train\.csv"),
    *((table, f"image,patient,{rest}".split(","), message) for rest, message in (
        ("Edema,edema", "columns 'Edema' and 'edema' are both the class 'Edema'"),
        ("My_one,my one", "columns 'My_one' and 'my one' are both the class"),
        ("Edema,", "column 4 has no name; name or remove it"),
        ("Edema,Age,age", "which column names the age: .*; 'Age', 'age'"),
        ("Edema,split", "column 'split': a class cannot have this name"),
        ("Edema,File", "column 'File': a class cannot have this name"),
        ("Edema,Image", "which column names the image: .*; 'image', 'Image'"),
        ("age,sex", "needs a column for every class; has only image, patient"),
        ("age,age,Edema", "needs one column 'age'; 2 have that name"))),
    (table, ["image", "person", "Edema"], "which column names the patient: "),
    (table, ["img", "patient", "Edema"], "which column names the image: "),
    (table, ["image|patient|Edema"], "which column names the image: "),
])  # fmt: skip
def test_a_header_that_lacks_a_column_or_can_be_misread_is_refused(read, reader, header, message):
    with pytest.raises(InputError, match=rf"(?s)labels\.csv, line 1.*{message}"):
        read(reader, {}, header=header)


def test_only_the_data_sets_own_names_become_canonical(tmp_path):
    header = ["id", "Effusion", "Other finding"]
    for dataset, name in (("nih", "Pleural Effusion"), ("table", "Effusion")):
        classes = cell_values.class_columns(tmp_path, header, ["id"], dataset)
        assert classes == {"Effusion": name, "Other finding": "Other finding"}


@pytest.mark.parametrize(("dataset", "columns"), [
    ("nih", ("Fracture", "Nodule or mass", "Airspace opacity")), ("chexpert", ("Hernia",)),
    ("mimic", ("Infiltration",)), ("vindr", ("Mass",)),
])  # fmt: skip
def test_labels_that_would_not_be_read_are_refused(tmp_path, dataset, columns):
    """Google's adjudicated NIH labels are columns behind the mined ones."""
    paths = [tmp_path / f"{number}.csv" for number in range(len(OFFICIAL[dataset].files))]
    for path, text in zip(paths, OFFICIAL[dataset].files, strict=True):
        path.write_text(text)
    header, *rows = cells_of(OFFICIAL[dataset].files[0])
    grid = [[*header, *columns], *([*row, *["YES"] * len(columns)] for row in rows)]
    paths[0].write_text("\n".join(",".join(f'"{cell}"' for cell in row) for row in grid))
    with pytest.raises(InputError, match=f"line 1: the columns '{columns[0]}'.*look like labels"):
        data_sets.read(dataset, paths[:1], *paths[1:])

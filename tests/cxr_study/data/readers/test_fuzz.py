"""Damaged tables: every reader gives the undamaged table, or refuses by file, line and column."""

import csv
import gzip
import io
import re
from dataclasses import dataclass, field

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES
from cxr_study.data.readers import read
from profiles import examples

DESCRIPTORS = ["image", "patient", "view", "sex", "age"]
GARBAGE = ["☠", "#REF!", "1,5", "NULL"]
NAN = float("nan")


@dataclass
class Official:
    """An undamaged download.

    Attributes:
        files: The csv files, as text; the first holds the labels.
        rows: The label table that they are, written down by hand.
        free: Column -> fields of the label table that follow from it whatever its text is; none
            for a column that is not read. Any other column refuses garbage.
        blank: The same for a column in which a blank, too, has a meaning.
        needed: Columns that cannot be missing, where every column that is not known is a class;
            None where all that are read cannot be missing, and no others are.
        lines: Lines of the labels per image.
    """

    dataset: str
    files: tuple[str, ...]
    rows: list[list]
    classes: tuple[str, ...]
    free: dict[str, set[str]]
    blank: dict[str, set[str]] = field(default_factory=dict)
    needed: set[str] | None = None
    lines: int = 1

    @property
    def table(self):
        return pd.DataFrame(self.rows, columns=[*DESCRIPTORS, *self.classes])


def labelled(default, **present):
    """Labels of the CheXpert classes in order, blanks for underscores."""
    by_name = {name.replace("_", " "): value for name, value in present.items()}
    return [by_name.get(name, default) for name in CHEXPERT_CLASSES]


PATIENTS = "CheXpert-v1.0-small/train/patient0000"
CHEXPERT = (
    "No Finding,Enlarged Cardiomediastinum,Cardiomegaly,Lung Opacity,Lung Lesion,Edema,"
    "Consolidation,Pneumonia,Atelectasis,Pneumothorax,Pleural Effusion,Pleural Other,Fracture,"
    "Support Devices"
)
OWN = {name: {name} for name in CHEXPERT_CLASSES}
VINDR = (
    "Aortic enlargement,Atelectasis,Calcification,Cardiomegaly,Clavicle fracture,Consolidation,"
    "Edema,Emphysema,Enlarged PA,ILD,Infiltration,Lung Opacity,Lung cavity,Lung cyst,"
    "Mediastinal shift,Nodule/Mass,Pleural Effusion,Pleural Thickening,Pneumothorax,Fibrosis,"
    "Rib fracture,Other lesion,COPD,Lung tumor,Pneumonia,Tuberculosis,Other diseases"
)
VINDR_HEADER = (
    VINDR.replace("Effusion", "effusion")
    .replace("Thickening", "thickening")
    .replace("Fibrosis", "Pulmonary fibrosis")
)
ZEROS = "0," * 26


def unread(*columns):
    return {column: set() for column in columns}


def nih_row(image, patient, view, sex, age, *present):
    return [image, patient, view, sex, age, *(float(name in present) for name in NIH_CLASSES)]


OFFICIAL = {
    "nih": Official(
        "nih",
        (
            "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,"
            "View Position,OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y],\n"
            "00000001_000.png,Cardiomegaly|Effusion,0,1,058Y,M,PA,1,2,.1,.2,\n"
            "00000001_001.png,No Finding,1,1,59,M,AP,1,2,.1,.2,\n"
            "00000012_000.png,Hernia,0,12,414,F,PA,1,2,.1,.2,\n",
        ),
        [
            nih_row("00000001_000.png", "1", "PA", "M", 58, "Cardiomegaly", "Pleural Effusion"),
            nih_row("00000001_001.png", "1", "AP", "M", 59),
            nih_row("00000012_000.png", "12", "PA", "F", NAN, "Hernia"),
        ],
        NIH_CLASSES,
        {
            "Image Index": {"image"},
            "View Position": {"view"},
            "Patient Gender": {"sex"},
            **unread("Follow-up #", "OriginalImage[Width", "Height]", "y]", ""),
            **unread("OriginalImagePixelSpacing[x"),
        },
        {"Patient Age": {"age"}},
    ),
    "chexpert": Official(
        "chexpert",
        (
            f"Path,Sex,Age,Frontal/Lateral,AP/PA,{CHEXPERT},note\n"
            f"{PATIENTS}1/study1/view1_frontal.jpg,Female,68,Frontal,AP,1.0,,,,,,,,,0.0,,,,1.0,\n"
            f"{PATIENTS}2/study2/view1_frontal.jpg,Male,87,Frontal,LL,,,-1.0,1.0,,,,,,,,,1.0,,\n"
            f"{PATIENTS}2/study2/view2_lateral.jpg,Male,87,Lateral,,,,-1.0,1.0,,,,,,,,,1.0,,\n",
        ),
        [
            [
                f"{PATIENTS}1/study1/view1_frontal.jpg",
                "patient00001",
                "AP",
                "F",
                68,
                *labelled(-2, Pneumothorax=0, Support_Devices=1),
            ],
            [
                f"{PATIENTS}2/study2/view1_frontal.jpg",
                "patient00002",
                "frontal",
                "M",
                87,
                *labelled(-2, Cardiomegaly=-1, Lung_Opacity=1, Fracture=1),
            ],
            [
                f"{PATIENTS}2/study2/view2_lateral.jpg",
                "patient00002",
                "lateral",
                "M",
                87,
                *labelled(-2, Cardiomegaly=-1, Lung_Opacity=1, Fracture=1),
            ],
        ],
        CHEXPERT_CLASSES,
        unread("No Finding", "note"),
        OWN | {"Sex": {"sex"}, "Age": {"age"}, "AP/PA": {"view"}},
    ),
    "mimic": Official(
        "mimic",
        (
            f"subject_id,study_id,{CHEXPERT},note\n"
            "10000032,50414267,1.0,,,,,,,,,,,,,,\n"
            "10000764,57375967,,,,,,1.0,-1.0,,,,0.0,,,,\n",
            "dicom_id,subject_id,study_id,ViewPosition,Rows\n"
            "02aa-1,10000032,50414267,PA,3056\n"
            "174b-2,10000764,57375967,LL,3056\n",
        ),
        [
            ["files/p10/p10000032/s50414267/02aa-1.jpg", "10000032", "PA", "", NAN, *labelled(-2)],
            [
                "files/p10/p10000764/s57375967/174b-2.jpg",
                "10000764",
                "lateral",
                "",
                NAN,
                *labelled(-2, Edema=1, Consolidation=-1, Pleural_Effusion=0),
            ],
        ],
        CHEXPERT_CLASSES,
        {
            "dicom_id": {"image"},
            "ViewPosition": {"view"},
            **unread("Rows", "No Finding", "note"),
        },
        OWN,
    ),
    "cxr-lt": Official(
        "cxr-lt",
        (
            "dicom_id,subject_id,study_id,ViewPosition,ViewCodeSequence_CodeMeaning,fpath,Bulla,"
            "Normal,Mass\n"
            "02aa,10000032,s50414267,AP,x,files/p10/p10000032/s50414267/02aa.jpg,0,0,1\n"
            "174b,10000764,s57375967,LL,x,files/p10/p10000764/s57375967/174b.jpg,1,0,0\n",
        ),
        [
            ["files/p10/p10000032/s50414267/02aa.jpg", "10000032", "AP", "", NAN, 0, 1],
            ["files/p10/p10000764/s57375967/174b.jpg", "10000764", "lateral", "", NAN, 1, 0],
        ],
        ("Bulla", "Mass"),
        {
            "ViewPosition": {"view"},
            **unread("dicom_id", "study_id", "ViewCodeSequence_CodeMeaning", "Normal"),
        },
        needed={"subject_id", "ViewPosition", "fpath"},
    ),
    "vindr": Official(
        "vindr",
        (
            f"image_id,rad_id,{VINDR_HEADER},No finding\n"
            f"50ab,R1,1,{ZEROS}0\n50ab,R2,0,{ZEROS}1\n50ab,R3,1,{ZEROS}0\n"
            f"6ccd,R1,1,{ZEROS}0\n6ccd,R2,0,{ZEROS}1\n6ccd,R3,0,{ZEROS}0\n",
        ),
        [
            ["50ab", "50ab", "PA", "", NAN, 1, *[0] * 26],
            ["6ccd", "6ccd", "PA", "", NAN, 0, *[0] * 26],
        ],
        tuple(VINDR.split(",")),
        {"rad_id": {"no field, but read"}, **unread("No finding")},
        lines=3,
    ),
    "padchest": Official(
        "padchest",
        (
            "n,ImageID,ImageDir,StudyDate_DICOM,PatientID,PatientBirth,PatientSex_DICOM,"
            "Projection,Labels,Report\n"
            "0,1_a.png,0,20140915,8398,1950.0,F,PA,\"['cardiomegaly', ' goiter']\",\n"
            "1,2_b.png,54,20110404,9001,1988,M,L,['normal'],\n"
            "2,3_c.png,1,20100101,9001,,O,COSTAL,\"['goiter', 'exclude', 'cardiomegaly']\",\n",
        ),
        [
            ["0/1_a.png", "8398", "PA", "F", 64, 1, 1],
            ["54/2_b.png", "9001", "lateral", "M", 23, 0, 0],
            ["1/3_c.png", "9001", "other", "", NAN, 1, 1],
        ],
        ("Cardiomegaly", "goiter"),
        {
            **unread("n", "Report"),
            "ImageID": {"image"},
            "PatientID": {"patient"},
            "PatientSex_DICOM": {"sex"},
            "Projection": {"view"},
        },
        {
            "StudyDate_DICOM": {"age"},
            "PatientBirth": {"age"},
            "Labels": {"Cardiomegaly", "goiter"},
        },
    ),
    "table": Official(
        "table",
        (
            "image,patient,view,sex,age,pleural_effusion,My finding,No Finding\n"
            "p1/1.png,A 1,PA,F,63,1,,0\n"
            "p1/2.png,A 1,lateral,F,63,-1,0,0\n"
            "p2/1.png,B 2,AP,M,,0,1.0,0\n",
        ),
        [
            ["p1/1.png", "A 1", "PA", "F", 63, 1, -2],
            ["p1/2.png", "A 1", "lateral", "F", 63, -1, 0],
            ["p2/1.png", "B 2", "AP", "M", NAN, 0, 1],
        ],
        ("Pleural Effusion", "My finding"),
        {"image": {"image"}, "patient": {"patient"}, **unread("No Finding")},
        {
            "view": {"view"},
            "sex": {"sex"},
            "age": {"age"},
            "pleural_effusion": {"Pleural Effusion"},
            "My finding": {"My finding"},
        },
        needed={"image", "patient"},
    ),
}


@pytest.fixture(scope="module")
def read_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")

    def read_bytes(dataset, files, zipped):
        """Read the labels and the metadata, if any, of which one may be zipped."""
        paths = [folder / f"{name}.csv{'.gz' * z}" for name, z in zip("lm", zipped, strict=False)]
        for path, content in zip(paths, files, strict=False):
            path.write_bytes(content)
        return read(dataset, paths[:1], paths[1] if len(files) > 1 else None)

    return read_bytes


def cells_of(text):
    return list(csv.reader(io.StringIO(text)))


def text_of(grid, raw=None):
    """The csv; `raw` is the position of a cell to be written with a quote in front."""
    out = io.StringIO()
    for i, row in enumerate(grid):
        cells = [f'"{cell}"' if "," in cell else cell for cell in row]
        if raw is not None and raw[0] == i:
            cells[raw[1]] = '"' + cells[raw[1]]
        out.write(",".join(cells) + "\n")
    return out.getvalue()


def assert_same(got, want, changed=()):
    """The tables agree, but for fields that may have changed: pairs of row and column."""
    assert list(got.columns) == list(want.columns)
    assert len(got) == len(want)
    for row, column in {(row, column) for row in range(len(got)) for column in got} - set(changed):
        left, right = got.at[row, column], want.at[row, column]
        assert left == right or (left != left and right != right), (row, column, left, right)


def assert_names_file(error, cell=False):
    assert re.search(r"[lm]\.csv", str(error))
    if cell:
        assert re.search(r"[lm]\.csv(\.gz)?, line \d+, column '.+': ", str(error))


def fuzz(number):
    """Settings for so many examples, the same in every run."""
    fixtures = HealthCheck.function_scoped_fixture
    return settings(
        max_examples=examples(number), derandomize=True, suppress_health_check=[fixtures]
    )


every_data_set = pytest.mark.parametrize("official", OFFICIAL.values(), ids=OFFICIAL)


@every_data_set
def test_the_undamaged_tables_are_read_as_written_down(official, read_files):
    files = [text.encode() for text in official.files]
    assert_same(read_files(official.dataset, files, [False, False]), official.table)


@every_data_set
@fuzz(40)
@given(data=st.data())
def test_harmless_differences_between_files_change_nothing(official, read_files, data):
    draw, files, zipped = data.draw, [], []
    for text in official.files:
        grid = cells_of(text)
        if official.needed is None:
            for name in draw(st.lists(st.sampled_from(["extra", "Patient", "0"]), unique=True)):
                grid = [[*row, f"{name} {i}" if i else name] for i, row in enumerate(grid)]
            order = draw(st.permutations(range(len(grid[0]))))
            grid = [[row[column] for column in order] for row in grid]
        pad = draw(st.sampled_from(["", " ", "\t"]))
        out = io.StringIO()
        csv.writer(
            out,
            quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
            lineterminator=draw(st.sampled_from(["\n", "\r\n"])) * draw(st.integers(1, 2)),
        ).writerows([[pad + cell + pad for cell in row] for row in grid])
        content = (draw(st.sampled_from(["", "\ufeff"])) + out.getvalue()).encode()
        if draw(st.booleans()):
            content = content.rstrip(b"\r\n") if not content.rstrip().endswith(b",") else content
        zipped.append(draw(st.booleans()))
        files.append(gzip.compress(content) if zipped[-1] else content)
    assert_same(read_files(official.dataset, files, zipped), official.table)


@every_data_set
@fuzz(120)
@given(data=st.data())
def test_a_damaged_cell_is_refused_or_changes_its_own_field_only(official, read_files, data):
    draw = data.draw
    damaged = draw(st.integers(0, len(official.files) - 1))
    grid = cells_of(official.files[damaged])
    row, column = draw(st.integers(1, len(grid) - 1)), draw(st.integers(0, len(grid[0]) - 1))
    name, text = grid[0][column], draw(st.sampled_from(["", *GARBAGE]))
    grid[row][column] = text
    files = [text.encode() for text in official.files]
    files[damaged] = text_of(grid).encode()
    fields = official.free.get(name, official.blank.get(name) if not text else None)
    try:
        got = read_files(official.dataset, files, [False, False])
    except TableError as error:
        assert_names_file(error, cell=True)
        assert fields != set()
    else:
        assert fields is not None, f"{text!r} in {name} was taken"
        image = (row - 1) // official.lines
        assert_same(got, official.table, [(image, field) for field in fields])


@every_data_set
@fuzz(80)
@given(data=st.data())
def test_a_damaged_shape_is_refused(official, read_files, data):
    draw = data.draw
    damaged = draw(st.integers(0, len(official.files) - 1))
    grid = cells_of(official.files[damaged])
    row, column = draw(st.integers(1, len(grid) - 1)), draw(st.integers(0, len(grid[0]) - 1))
    name, raw = grid[0][column], None
    damage = draw(
        st.sampled_from(["drop", "rename", "twice", "long", "short", "again", "quote", "header"])
    )
    if damage == "drop":
        grid = [cells[:column] + cells[column + 1 :] for cells in grid]
    elif damage == "rename":
        grid[0][column] = name + "☠"
    elif damage == "twice":
        grid = [[*cells, cells[column]] for cells in grid]
    elif damage == "long":
        grid[row].insert(column, draw(st.sampled_from(["", "1", *GARBAGE])))
    elif damage == "short":
        del grid[row][column]
    elif damage == "again":
        grid.append(grid[row])
    elif damage == "quote":
        raw = (row, column)
    else:
        del grid[0]
    files = [text.encode() for text in official.files]
    files[damaged] = text_of(grid, raw).encode()
    try:
        got = read_files(official.dataset, files, [False, False])
    except TableError as error:
        assert_names_file(error)
    else:
        fields = official.free.get(name, official.blank.get(name, {name}))
        assert damage in (["drop", "rename", "twice"] if not fields else ["drop", "rename"])
        assert name not in official.needed if official.needed else not fields
        kept = [column for column in official.table if column not in fields]
        assert_same(got[kept], official.table[kept])


@every_data_set
@fuzz(120)
@given(data=st.data())
def test_damaged_bytes_are_refused_or_the_rows_left_are_right(official, read_files, data):
    draw = data.draw
    damaged = draw(st.integers(0, len(official.files) - 1))
    files, zipped = [text.encode() for text in official.files], [False, False]
    damage = draw(st.sampled_from(["cut", "nul", "latin", "empty", "cut zip", "flip zip"]))
    content = files[damaged]
    if "zip" in damage:
        content, zipped[damaged] = gzip.compress(content, mtime=0), True
    at = draw(st.integers(0, len(content) - 1))
    files[damaged] = {
        "cut": content[:at],
        "nul": content[:at] + b"\0" + content[at:],
        "latin": content[:at] + b"\xe9" + content[at:],
        "empty": b"",
        "cut zip": content[:at],
        "flip zip": content[:at]
        + bytes([content[at] ^ 1 << draw(st.integers(0, 7))])
        + content[at + 1 :],
    }[damage]
    try:
        got = read_files(official.dataset, files, zipped)
    except TableError as error:
        assert_names_file(error)
        return
    assert damage in ("cut", "flip zip")
    want = official.table.iloc[: len(got)]
    for name in set(want) - set(got):  # PadChest: no list names the finding any more
        assert not want[name].any()
    if official.dataset == "mimic":  # studies without labels
        unlabelled = got[list(CHEXPERT_CLASSES)].isna().all(axis=1)
        want.loc[unlabelled, list(CHEXPERT_CLASSES)] = NAN
    assert_same(got, want[list(got)])
    if damage == "flip zip":
        assert len(got) == len(official.table)

import pytest

from cxr_study.data.labels.csv_columns import TableError
from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from cxr_study.data.readers import table


@pytest.fixture
def read(tmp_path):
    def read_text(*lines):
        path = tmp_path / "hospital.csv"
        path.write_text("\n".join(lines) + "\n")
        return table.read(path)

    return read_text


def test_a_row_becomes_a_row_of_the_label_table(read):
    got = read("Mass,image,patient,view,sex,age,Edema", r"1,p 1\.\1.png,007,PA,F,63.5,0")
    assert list(got) == ["image", "patient", "view", "sex", "age", "Mass", "Edema"]
    assert got.iloc[0].tolist() == ["p 1/1.png", "007", "PA", "F", 63.5, 1, 0]


def test_path_is_image_without_a_view_all_are_frontal_and_a_label_has_four_texts(read):
    rows = [f"./{i}.png,1,{text}" for i, text in enumerate(["1", "1.0", "0", "-1", ""])]
    got = read("path,patient,Edema", *rows)
    assert got["image"].tolist() == [f"{i}.png" for i in range(5)]
    assert got["Edema"].tolist() == [POSITIVE, POSITIVE, NEGATIVE, UNCERTAIN, BLANK]
    assert set(got["view"]) == {"frontal"} and set(got["sex"]) == {""} and got["age"].isna().all()


def test_names_are_folded_where_the_catalogue_knows_them_and_kept_where_not(read):
    header = "image,patient,view,PLEURAL_EFFUSION,Effusion,My finding,no_finding,Normal"
    got = read(header, "a.png,1,,1,1,1,1,1")
    assert got.columns[5:].tolist() == ["Pleural Effusion", "Effusion", "My finding"]
    assert got["view"].tolist() == [""]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("image,patient,Edema,edema", "columns 'Edema' and 'edema' are both the class 'Edema'"),
        ("image,patient,Mass,Mass", "columns 'Mass' and 'Mass' are both the class 'Mass'"),
        ("image,patient,My_one,my one", "columns 'My_one' and 'my one' are both the class"),
        ("image,patient,Edema,", "column 4 has no name; name or remove it"),
        ("image,patient,Edema,Age", "column 'Age': no class can have the name .* write 'age'"),
        ("image,patient,Edema,split", "column 'split': no class can have this name"),
        ("image,patient,Edema,File", "column 'File': no class can have this name"),
        ("image,patient,Edema,path", "needs one column 'image' or 'path'; 2 have that name"),
        ("image,patient,age,sex", "needs a column for every class; has only image, patient"),
        ("image,person,Edema,Mass", "needs a column 'patient'"),
        ("img,patient,Edema,Mass", "needs a column 'image' or 'path'"),
        ("image,patient,age,age,Edema", "needs one column 'age'; 2 have that name"),
        ("image;patient;Edema;Mass", "with commas between the cells"),
    ],
)
def test_a_header_that_can_be_misread_is_refused(read, header, message):
    with pytest.raises(TableError, match=rf"hospital\.csv, line 1.*{message}"):
        read(header, "a.png,1,0,0")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a.png,2,PA,F,50,1", "column 'image': 'a.png' stands in line 2 already"),
        ("./a.png,2,PA,F,50,1", "column 'image': 'a.png' stands in line 2 already"),
        (",2,PA,F,50,1", "column 'image': needs the path of a file below the images .*; got ''"),
        ("/b.png,2,PA,F,50,1", "column 'image': needs the path of a file below the images folder"),
        (r"C:\b.png,2,PA,F,50,1", "column 'image': needs the path"),
        ("../b.png,2,PA,F,50,1", "column 'image': needs the path"),
        ("b.png,,PA,F,50,1", "column 'patient': the cell is blank"),
        ("b.png,2,pa,F,50,1", "column 'view': needs PA, AP, frontal, lateral, other or a blank"),
        ("b.png,2,PA,f,50,1", "column 'sex': needs F, M or a blank; got 'f'"),
        ("b.png,2,PA,F,fifty,1", "column 'age': needs a number of years; got 'fifty'"),
        ("b.png,2,PA,F,50,true", "column 'Edema': needs 1, 0, -1 or a blank; got 'true'"),
        ("b.png,2,PA,F,50,0.5", "column 'Edema': needs 1, 0, -1 or a blank; got '0.5'"),
    ],
)
def test_a_bad_cell_is_refused_by_file_line_and_column(read, row, message):
    with pytest.raises(TableError, match=rf"hospital\.csv, line 3, {message}"):
        read("image,patient,view,sex,age,Edema", "a.png,1,PA,M,50,1", row)

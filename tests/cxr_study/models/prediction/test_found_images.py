import pytest

from cxr_study.models.prediction.found_images import FoundImage, find
from dicom_files import dataset, written
from tiny_model import picture


def test_a_folder_has_pictures_and_dicom_files_by_path_and_nothing_hidden(tmp_path):
    for name in ("b.PNG", "a/z.jpeg", ".hidden.png", ".trash/x.png"):
        picture(tmp_path / name.lower()).rename(tmp_path / name)
    (tmp_path / "a/IM0001").write_bytes(written(dataset([[1, 2]])))
    (tmp_path / "README").write_text("no image")
    assert [one.image for one in find([tmp_path])] == ["a/IM0001", "a/z.jpeg", "b.PNG"]


def test_a_csv_names_images_by_path_or_wherever_they_are(tmp_path):
    csv = tmp_path / "list.csv"
    first = picture(tmp_path / "images_001/images/1.png")
    csv.write_text("Finding,Image Index\nMass,1.png\nHernia,2.png\n")
    assert find([csv]) == [FoundImage("1.png", str(first)), FoundImage("2.png", "")]
    path = "CheXpert-v1.0/train/patient1/study1/view1.jpg"
    second = picture(tmp_path / "small/train/patient1/study1/view1.jpg")
    csv.write_text(f"Path\n{path}\n")
    assert find([csv]) == [FoundImage(path, str(second))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("picture\na.png\n", "list.csv needs a column named one of image, .*; has picture"),
        ("image,x\n,1\n", "line 2: column image needs an image"),
        ("image\n", "needs a row; there is none"),
    ],
)
def test_a_csv_without_images_is_refused(tmp_path, text, message):
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        find([tmp_path / "list.csv"])


def test_a_source_without_images_is_refused(tmp_path):
    with pytest.raises(ValueError, match="needs an image file"):
        find([tmp_path])
    with pytest.raises(ValueError, match="does not exist"):
        find([tmp_path / "nothing.png"])

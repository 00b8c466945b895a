import pytest

from cxr_study.readers import CLASSES, chexpert, nih, read


@pytest.mark.parametrize("dataset", CLASSES)
def test_every_dataset_is_read_by_its_own_reader(dataset, tmp_path):
    csv = tmp_path / "labels.csv"
    csv.write_text(
        "Image Index,Finding Labels,Patient ID,Patient Age,Patient Gender,View Position\n"
        "a.png,Mass,1,50,F,PA\n"
        if dataset == "nih"
        else "Path,Sex,Age,Frontal/Lateral,AP/PA," + ",".join(chexpert.CHEXPERT_CLASSES) + "\n"
        "patient00001/study1/view1_frontal.jpg,Male,50,Frontal,AP" + "," * 13 + "\n"
    )
    reader = {"nih": nih, "chexpert": chexpert}[dataset]
    table = read(dataset, csv)
    assert table.equals(reader.read(csv))
    assert tuple(table.columns[5:]) == CLASSES[dataset]

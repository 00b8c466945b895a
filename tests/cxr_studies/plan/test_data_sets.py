import shutil

import pytest

from cxr_phantom import demo_data
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.data_sets import data_sets, given_sites
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES


@pytest.fixture
def found(small_data, tmp_path):
    return data_sets(small_data.data, ["nih", "chexpert", "mimic"], tmp_path)


def test_a_download_and_a_site_file_are_found_whole_by_the_names_of_the_study(found):
    assert {name: data.site.site for name, data in found.items()} == {n: n for n in found}
    assert all(120 < len(data.table) <= 150 for data in found.values())  # the frontal ones
    classes = [set(data.classes) for data in found.values()]
    assert classes == [set(NIH_CLASSES), set(CHEXPERT_CLASSES), set(UNION_CLASSES)]


def test_an_official_download_says_what_its_site_file_does(found, small_data, tmp_path):
    folder = small_data.home / "phantom/chexpert"
    data = small_data.data.model_copy(update={"data": {"chexpert": folder}})
    downloaded = data_sets(data, ["chexpert"], tmp_path / "out")["chexpert"]
    assert downloaded.digest == found["chexpert"].digest
    assert downloaded.classes == found["chexpert"].classes


def test_the_phantom_is_as_large_as_asked_for_and_its_sites_are_drawn_for_every_seed(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(demo_data, "IMAGE_SIZE", 16)
    data = StudyData(data="phantom", images=60)
    found = data_sets(data, ["nih", "mimic"], tmp_path)
    assert len(found["nih"].table) == 60 and list(found) == ["nih", "mimic"]
    first, again, second = (given_sites(data, seed) for seed in (0, 0, 1))
    assert list(first) == ["nih", "chexpert"] and len(first["nih"].table) == 60
    assert first["nih"].site.truth.is_file()
    digests = [each["nih"].digest for each in (first, again, second)]
    assert digests[0] == digests[1] != digests[2]


def test_a_digest_is_of_the_labels_and_the_sizes_of_images_wherever_they_are(
    found, small_data, tmp_path
):
    def relabel(folder):
        csv = next(folder.glob("*.csv"))
        csv.write_text(csv.read_text().replace("No Finding", "Hernia", 1))

    def grow(folder):
        image = next(folder.glob("**/*.png"))
        image.write_bytes(image.read_bytes() + b"\0")

    digests = [found["nih"].digest]
    for number, change in enumerate((lambda folder: None, relabel, grow)):
        copy = tmp_path / f"copy{number}/nih"
        shutil.copytree(small_data.home / "phantom/nih", copy)
        change(copy)
        data = small_data.data.model_copy(update={"data": {"nih": copy}})
        digests.append(data_sets(data, ["nih"], tmp_path / "out")["nih"].digest)
    assert digests[0] == digests[1] and len(set(digests)) == 3

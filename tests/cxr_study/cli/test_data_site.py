"""A hospital's folder with a csv of its own becomes a site."""

from csv import reader as csv_reader
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cxr_study.data.sites.site_data import load_images, load_labels, read_labels
from cxr_study.data.sites.site_file import read_site_file
from downloads import OFFICIAL
from typed import answer

HEADER = "Bildname;Patient-Nr;Geschlecht;Datum;Pleuraerguss;Größe\n"
SITE = "sites/klinik.yaml"
TABLE = ("table", "--encoding", "cp1252")
SAID = (
    *("--column", "Bildname=image", "--column", "Patient-Nr=patient", "--column", "Geschlecht=sex"),
    *("--word", "ja=1", "--word", "nein=0", "--word", "Geschlecht:w=F"),
    *("--encoding", "cp1252", "--blank", "negative"),
)
LIST = '"Edema\nMass"'


@pytest.fixture
def hospital(cache, tmp_path, monkeypatch):
    """A folder with a csv of Windows and images below it, where the commands are typed."""
    monkeypatch.chdir(tmp_path)
    images = tmp_path / "klinik/bilder/2021"
    images.mkdir(parents=True)
    rng = np.random.default_rng(0)
    rows = []
    for number in range(40):
        name = f"Müller_{number}.png"
        Image.fromarray(rng.integers(0, 255, (16, 16), np.uint8)).save(images / name)
        effusion = "ja" if number % 4 == 0 else "nein"
        large = "" if number == 3 else effusion
        rows.append(f"{name};{number};w;{number % 28 + 1}.2.2021;{effusion};{large}\n")
    (tmp_path / "klinik/befunde.csv").write_bytes((HEADER + "".join(rows)).encode("cp1252"))
    return tmp_path / "klinik"


def test_folder_and_csv_become_a_site_that_is_ready_to_train(hospital):
    said = answer("data", "site", "table", "klinik", SITE, *SAID)
    for part in (
        "40 rows, semicolons between the cells",
        "columns    image: Bildname, patient: Patient-Nr, sex: Geschlecht",
        "training   Pleuraerguss: 7 positive, 21 negative",
        "blank      1 labels, which count as negative",
        "ignored    Datum: '1.2.2021', '2.2.2021', '3.2.2021', '4.2.2021', '5.2.2021' and 23 more",
        "images     40 of 40 below klinik/bilder/2021",
        "'Pleuraerguss' (klinik) resembles 'Pleural Effusion'",
        "New class: 'Größe' (klinik) is not in the vocabulary",
        "40 of 40 images usable, 40 decoded now",
        "next       surgagg data audit sites/klinik.yaml",
    ):
        assert part in said
    site = read_site_file(hospital.parent / SITE)
    assert site.words == {"Geschlecht:w": "F", "ja": "1", "nein": "0"}
    labels = load_labels(site)
    assert labels.table["Pleuraerguss"].sum() == 10
    assert len(load_images(labels, 64).rows) == 40
    assert "exists; remove it" in answer("data", "site", "table", "klinik", SITE, code=2)


def test_a_picture_of_two_patients_is_named_when_the_site_file_is_written(hospital):
    first, second = sorted(hospital.rglob("*.png"))[:2]
    second.write_bytes(first.read_bytes())
    said = answer("data", "site", "table", "klinik", SITE, *SAID, "--no-prepare")
    assert "repeated   1 image of other names, the same file, 1 of another patient" in said
    assert "'bad_images: 1'" in said and (hospital.parent / SITE).is_file()


def test_images_in_folders_that_the_csv_does_not_name(hospital):
    for number, image in enumerate(sorted(hospital.rglob("*.png"))):
        folder = hospital / f"bilder/{number % 28}/a"
        folder.mkdir(parents=True, exist_ok=True)
        image.rename(folder / image.name)
    told = ("data", "site", "table", "klinik", SITE, *SAID)
    said = "38 of 40 images do not lie below klinik/bilder/0/a as the csv says; some"
    assert said in answer(*told, code=2)
    assert "40 of 40 images usable" in answer(*told, "--nested")


def test_what_the_csv_does_not_tell_is_asked_for_all_at_once(hospital):
    said = answer("data", "site", "table", "klinik", SITE, "--encoding", "cp1252", code=2)
    for part in ("{<name>: image}); 'Bildname', 'Patient-Nr', ", "which columns are classes"):
        assert part in said
    assert "--encoding cp1252" in answer("data", "site", "table", "klinik", SITE, code=2)
    assert not (hospital.parent / "sites").exists()


def test_findings_in_lists_and_probabilities_take_options(hospital):
    csv, options = hospital / "befunde.csv", ("--images", "klinik", "--no-prepare")
    rows = [f"Müller_{n}.png,{n},{LIST if n % 4 else ''},0.{n + 10}\n" for n in range(40)]
    csv.write_text("image,patient,Befund,Pneumonia\n" + "".join(rows[:1] + rows))
    told = ("--findings", "Befund", "--separator", r"\n")
    said = answer("data", "site", "table", csv, SITE, *options, *told, code=2)
    assert "20 blank labels count as: --blank negative, or --blank 'not labelled', or --unl" in said
    told = (*told, "--unlisted", "negative", "--blank", "not labelled")
    said = answer("data", "site", "table", csv, SITE, *options, *told)
    for part in (
        "findings: Befund\n",
        "note       1 rows say what an earlier one does; each counts once",
        "training   Mass: 21 positive, 0 negative",
        "  Mass: no negative training image, so it would say yes to everybody",
        "blank      20 labels, which count as not labelled",
    ):
        assert part in said
    (hospital.parent / SITE).unlink()
    answer("data", "site", "table", csv, SITE, *options, "--threshold", "0.3")
    site = read_site_file(hospital.parent / SITE)
    assert (site.threshold, load_labels(site).table["Pneumonia"].sum()) == (0.3, 20)


def test_what_is_decided_by_default_stands_in_the_site_file_and_is_said(hospital):
    csv, options = hospital / "befunde.csv", ("--images", "klinik", "--no-prepare")
    values = [("1", "1"), ("0", "-1"), ("0", "0"), ("-1", "0")] * 10
    rows = [f"Müller_{n}.png,L,{','.join(pair)}\n" for n, pair in enumerate(values)]
    csv.write_text("image,View,Edema,Mass\n" + "".join(rows))
    told = ("data", "site", "table", csv, SITE, *options, "--word", "L=lateral")
    assert "--patients each-image where no column does" in answer(*told, code=2)
    told = (*told, "--patients", "each-image")
    assert "Say 'views: all' to use them (--views all)" in answer(*told, code=2)
    assert not list(hospital.parent.rglob("*.yaml"))
    said = answer(*told, "--views", "all")
    assert "uncertain  20 labels, which count as negative (uncertain: zeros)" in said
    site = read_site_file(hospital.parent / SITE)
    assert (site.uncertain, site.views, site.patients) == (
        {"default": "zeros"},
        "all",
        "each-image",
    )
    csv.write_text("image,patient,Edema\nMüller_1.png,7,1\n")
    assert "column 'patient' names patients" in answer(*told[:4], "b.yaml", *told[5:], code=2)


def test_padchests_parts_are_merged_by_the_site_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("images").mkdir()
    header, row = OFFICIAL["padchest"].files[0].splitlines()[:2]
    named = dict(zip(header.split(","), next(csv_reader([row])), strict=True))
    rows = []
    for number in range(30):
        found = ["laminar atelectasis", "normal", "pneumonia"][number % 3]
        cells = {"ImageID": f"{number}.png", "PatientID": f"{number}", "Labels": f"['{found}']"}
        rows.append(",".join((named | cells).values()))
        Path(f"images/{number}.png").touch()
    rows[0] = rows[0].replace("laminar ", "")
    name = "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv"
    Path(name).write_text("\n".join([header, *rows]))
    said = answer("data", "site", "padchest", ".", SITE)
    assert "merged     Atelectasis: laminar atelectasis" in said
    assert read_labels(read_site_file(Path(SITE)))["Atelectasis"].sum() == 10


@pytest.mark.parametrize(("options", "message"), [
    (["nih", "--word", "ja=1"], "are of table"),
    (["nih", "--threshold", "0.5"], "are of table"),
    (["nih", "--images-by", "StudyID"], "are of table"),
    (["table", "--separator", "|"], "go with --findings COLUMN"),
    (["table", "--threshold", "50"], "'--threshold': "),
    ([*TABLE, "--findings", "Bild"], "no column 'Bild'; nearest known: Bildname"),
    (["table", "--word", "ja"], "--word is given as ja=1"),
    (["table", "--blank", "zero"], "not one of 'negative', 'not labelled'"),
    ([*TABLE, "--word", "ja=yes"], "key 'ja' needs one of 1, 0, -1"),
    ([*TABLE, "--column", "Bild=image"], "no column 'Bild'"),
    (["table", "--encoding", "cp0"], "needs the name of an encoding, such as cp1252; got 'cp0'"),
    ([*TABLE, "--column", "Datum=picture"], "key 'Datum' needs image, patient, view, sex"),
])  # fmt: skip
def test_a_mistake_is_told_and_leaves_nothing(hospital, options, message):
    dataset, *options = options
    assert message in answer("data", "site", dataset, "klinik", SITE, *options, code=2)
    assert not list(hospital.parent.rglob("*.yaml"))

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
GIVEN = (
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
    rng, rows = np.random.default_rng(0), []
    for number in range(40):
        name = f"Müller_{number}.png"
        Image.fromarray(rng.integers(0, 255, (16, 16), np.uint8)).save(images / name)
        effusion = "ja" if number % 4 == 0 else "nein"
        large = "" if number == 3 else effusion
        rows.append(f"{name};{number};w;{number % 28 + 1}.2.2021;{effusion};{large}\n")
    (tmp_path / "klinik/befunde.csv").write_bytes((HEADER + "".join(rows)).encode("cp1252"))
    return tmp_path / "klinik"


def test_folder_and_csv_become_a_site_that_is_ready_to_train(hospital):
    output = answer("data", "site", "table", "klinik", SITE, *GIVEN)
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
        assert part in output
    site = read_site_file(hospital.parent / SITE)
    assert site.words == {"Geschlecht:w": "F", "ja": "1", "nein": "0"}
    labels = load_labels(site)
    assert (labels.table["Pleuraerguss"].sum(), len(load_images(labels, 64).rows)) == (10, 40)
    assert "exists; remove it" in answer("data", "site", "table", "klinik", SITE, code=2)


def test_bits_of_16_bit_pictures_are_decided_once_and_a_run_notes_where_not(hospital, capsys):
    for number, image in enumerate(sorted(hospital.rglob("*.png"))):
        values = np.random.default_rng(number).integers(0, 4096, (16, 16), np.uint16)
        Image.fromarray(values).save(image)
    output = answer("data", "site", "table", "klinik", SITE, *GIVEN)
    assert "bits       12 of 16 in 16-bit images, by a sample of them (bits: 12)" in output
    assert "are assumed to have" not in output
    path = hospital.parent / SITE
    load_images(load_labels(read_site_file(path)), 64)
    assert "assumed" not in capsys.readouterr().err
    path.write_text(path.read_text().replace("bits: 12\n", ""))
    load_images(load_labels(read_site_file(path)), 64)
    assert "note: klinik: 16-bit images are assumed to have 12 bits" in capsys.readouterr().err


def test_a_picture_of_two_patients_is_named_when_the_site_file_is_written(hospital):
    first, second = sorted(hospital.rglob("*.png"))[:2]
    second.write_bytes(first.read_bytes())
    output = answer("data", "site", "table", "klinik", SITE, *GIVEN, "--no-prepare")
    assert "repeated   1 image of other names, the same file, 1 of another patient" in output
    assert "'bad_images: 1'" in output and (hospital.parent / SITE).is_file()


def test_images_in_folders_that_the_csv_does_not_name(hospital):
    for number, image in enumerate(sorted(hospital.rglob("*.png"))):
        folder = hospital / f"bilder/{number % 28}/a"
        folder.mkdir(parents=True, exist_ok=True)
        image.rename(folder / image.name)
    command = ("data", "site", "table", "klinik", SITE, *GIVEN)
    output = "38 of 40 images are not at their path below klinik/bilder/0/a; some"
    assert output in answer(*command, code=2)
    assert "40 of 40 images usable" in answer(*command, "--nested")


def test_findings_in_lists_and_probabilities_take_options(hospital):
    csv, options = hospital / "befunde.csv", ("--images", "klinik", "--no-prepare")
    rows = [f"Müller_{n}.png,{n},{LIST if n % 4 else ''},0.{n + 10}\n" for n in range(40)]
    csv.write_text("image,patient,Befund,Pneumonia\n" + "".join(rows[:1] + rows))
    command = ("--findings", "Befund", "--separator", r"\n")
    output = answer("data", "site", "table", csv, SITE, *options, *command, code=2)
    meanings = "--blank negative, or --blank 'not labelled', or --unlisted negative"
    assert f"the meaning of the 20 blank labels: {meanings}" in output
    command = (*command, "--unlisted", "negative", "--blank", "not labelled")
    output = answer("data", "site", "table", csv, SITE, *options, *command)
    for part in (
        "findings: Befund\n",
        "ignored    Pneumonia: not a column of findings",
        "note       1 rows repeat an earlier one; each counts once",
        "training   Mass: 21 positive, 0 negative",
        "  Mass: no negative training image, so it would predict yes for every image",
        "blank      20 labels, which count as not labelled",
    ):
        assert part in output
    (hospital.parent / SITE).unlink()
    answer("data", "site", "table", csv, SITE, *options, "--threshold", "0.3")
    site = read_site_file(hospital.parent / SITE)
    assert (site.threshold, load_labels(site).table["Pneumonia"].sum()) == (0.3, 20)


def test_what_is_decided_by_default_is_in_the_site_file_and_is_printed(hospital):
    csv, options = hospital / "befunde.csv", ("--images", "klinik", "--no-prepare")
    values = [("1", "1"), ("0", "-1"), ("0", "0"), ("-1", "0")] * 10
    rows = [f"Müller_{n}.png,L,{','.join(pair)}\n" for n, pair in enumerate(values)]
    csv.write_text("image,View,Edema,Mass\n" + "".join(rows))
    command = ("data", "site", "table", csv, SITE, *options, "--word", "L=lateral")
    assert "--patients each-image if no column does" in answer(*command, code=2)
    command = (*command, "--patients", "each-image")
    assert "Set 'views: all' to use them (--views all)" in answer(*command, code=2)
    assert not list(hospital.parent.rglob("*.yaml"))
    output = answer(*command, "--views", "all")
    assert "uncertain  20 labels, which count as negative (uncertain: zeros)" in output
    site = read_site_file(hospital.parent / SITE)
    found = (site.uncertain, site.views, site.patients)
    assert found == ({"default": "zeros"}, "all", "each-image")
    csv.write_text("image,patient,Edema\nMüller_1.png,7,1\n")
    assert "column 'patient' names patients" in answer(*command[:4], "b.yaml", *command[5:], code=2)


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
    output = answer("data", "site", "padchest", ".", SITE)
    assert "merged     Atelectasis: laminar atelectasis" in output
    assert read_labels(read_site_file(Path(SITE)))["Atelectasis"].sum() == 10


@pytest.mark.parametrize(("options", "message"), [
    (["nih", "--word", "ja=1"], "are for table"), (["nih", "--threshold", "0.5"], "are for table"),
    (["nih", "--images-by", "StudyID"], "are for table"),
    (["table", "--separator", "|"], "need --findings COLUMN"),
    (["table", "--threshold", "50"], "'--threshold': "),
    ([*TABLE, "--findings", "Bild"], "no column 'Bild'; nearest known: Bildname"),
    (["table", "--word", "ja"], "--word needs the form ja=1"),
    (["table", "--blank", "zero"], "not one of 'negative', 'not labelled'"),
    (TABLE, "which columns are classes"), (["table"], "--encoding cp1252"),
    ([*TABLE, "--word", "ja=yes"], "key 'ja' needs one of 1, 0, -1"),
    ([*TABLE, "--column", "Bild=image"], "no column 'Bild'"),
])  # fmt: skip
def test_a_mistake_is_reported_and_leaves_nothing(hospital, options, message):
    dataset, *options = options
    assert message in answer("data", "site", dataset, "klinik", SITE, *options, code=2)
    assert not list(hospital.parent.rglob("*.yaml"))

import io
import json

import pandas as pd
import pytest
from rich.console import Console

from cxr_study.reports.run.console import auroc_table
from cxr_study.reports.run.cross_site_results import evaluations, read, write_csv
from cxr_study.runs.job_results import ResultsError

NORTH = {
    "bce": 0.3, "auroc": 0.75, "bce/Edema": 0.25, "auroc/Edema": 0.75, "bce/Nodule/Mass": 0.35,
    "images": 40.0, "positives/Edema": 10.0, "negatives/Edema": 30.0,
    "positives/Nodule/Mass": 0.0, "negatives/Nodule/Mass": 38.0,
}  # fmt: skip
SOUTH = {"bce/Edema": 0.5, "auroc/Edema": 0.5, "bce/Fracture": 0.125, "auroc/Fracture": 1.0}


@pytest.fixture
def server(tmp_path):
    """Write FLARE's results; the server's folder."""

    def write(results):
        file = tmp_path / "cross_site_val/cross_val_results.json"
        file.parent.mkdir()
        file.write_text(json.dumps(results), encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def rows(server):
    south = {"SRV_best": SOUTH, "SRV_last": {"bce/Hernia": 0.1}}  # the last on validation images
    return read(server({"south": south, "north": {"SRV_best": NORTH}}))


def printed(results, width=100):
    sites = evaluations(results)
    rows = [row for site in sites for row in site.test if row.labelled]
    means = [mean for site in sites for mean in site.means if mean.classes == "labelled"]
    text = io.StringIO()
    Console(file=text, width=width).print(auroc_table(rows, means))
    return text.getvalue()


def measured(results):
    """What is known of each class: AUROC and BCE, positives and negatives."""
    return results.astype(object).where(results.notna(), None).to_numpy().tolist()


@pytest.mark.parametrize(("model", "sent", "expected"), [
    ("SRV_evaluated", {"bce/Edema": 0.25}, (None, 0.25, None, None)),  # an evaluation job's
    ("SRV_best", {"positives/Edema": 0.0, "negatives/Edema": 0.0}, (None, None, 0, 0)),
    ("SRV_best", {"bce/Edema": "1", "auroc/Edema": float("nan")}, (None,) * 4),
    ("SRV_best", {"bce/Edema": 0.25, "auroc/Edema": 7.0}, (None, 0.25, None, None)),
    ("SRV_best", {"positives/Edema": 3.5, "negatives/Edema": 1e300}, (None,) * 4),
    ("SRV_best", {"positives/Edema": 4, "negatives/Edema": 2**53 + 2}, (None, None, 4, None)),
])  # fmt: skip
def test_what_is_not_measured_or_not_a_number_is_none(server, model, sent, expected):
    assert measured(read(server({"east": {model: sent}}))) == [["Edema", "east", *expected]]


def test_names_are_fit_for_a_terminal_whatever_a_site_sends(server):
    found = read(server({"[b]east": {"SRV_best": {"bce/\x1b[2J[red]Edema[/]\n": 0.25}}}))
    assert found["class_name"].tolist() == [r"\x1b[2J[red]Edema[/]\n"]
    assert found["class_name"][0] in printed(found) and "[b]east" in printed(found)


@pytest.mark.parametrize("results", [
    None, {}, {"north": {"SRV_last": NORTH}}, {"north": {"SRV_best": None}},
])  # fmt: skip
def test_without_a_tested_model_it_says_where_to_look(server, tmp_path, results):
    folder = tmp_path if results is None else server(results)
    with pytest.raises(ResultsError, match=r"no result of a test split.*error_log\.txt"):
        read(folder)


def test_the_csv_has_a_row_for_every_class_of_every_site_that_measures_it(rows, tmp_path):
    assert write_csv(rows, tmp_path / "new").read_text(encoding="utf-8").splitlines() == [
        "class_name,site,auroc,bce,positives,negatives",
        "Edema,north,0.75,0.25,10,30",
        "Edema,south,0.5,0.5,,",
        "Fracture,south,1.0,0.125,,",
        "Nodule/Mass,north,,0.35,0,38",
    ]


def test_classes_stand_by_sites_with_what_is_known_and_their_mean(rows):
    lines = [line for line in printed(rows).splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in line.strip("│").split("│")] for line in lines] == [
        ["Edema", "north", "0.750", "10", "30"],
        ["Nodule/Mass", "north", "not defined", "0", "38"],
        ["Edema", "south", "0.500", "withheld", "withheld"],
        ["Fracture", "south", "1.000", "withheld", "withheld"],
        ["mean", "north", "0.750", "", ""],
        ["", "", "over 1 of 2 classes", "", ""],
        ["mean", "south", "0.750", "", ""],
        ["", "", "over 2 of 2 classes", "", ""],
    ]


def test_classes_and_sites_of_the_run_that_no_site_measured_are_not_defined(rows):
    made = evaluations(rows, ("Edema", "Gout"), ("south", "east"))
    assert [each.site for each in made] == ["south", "east", "north"]
    names = ["Edema", "Fracture", "Gout", "Nodule/Mass"]
    assert all([row.class_name for row in each.test] == names for each in made)
    south, east, _ = made
    assert (south.data.classes, east.data.classes) == (("Edema", "Fracture"), ())
    assert south.data.images is None
    assert [(row.auroc, row.labelled) for row in south.test[1:3]] == [(1.0, True), (None, False)]


@pytest.mark.parametrize(("counts", "expected"), [
    ((9, 90), "(0.500 with 1 of too few patients)"),
    ((90, 9), "(0.500 with 1 of too few patients)"),
    ((10, 10), "over 2 of 2 classes "),
    ((None, None), "over 2 of 2 classes "),  # the site keeps them
])  # fmt: skip
def test_classes_of_too_few_images_are_no_part_of_the_mean(counts, expected):
    rows = [("Edema", "north", 0.75, 0.3, 40, 40), ("Mass", "north", 0.25, 0.3, *counts)]
    names = ["class_name", "site", "auroc", "bce", "positives", "negatives"]
    assert expected in printed(pd.DataFrame(rows, columns=names), 120)

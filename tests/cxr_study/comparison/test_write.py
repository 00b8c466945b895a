import json
import re
from xml.etree import ElementTree

import pandas as pd
import pytest

from cxr_study.comparison import figures
from cxr_study.comparison.grid import ENDINGS
from cxr_study.comparison.measures import MEASURES
from cxr_study.comparison.write import render, write


@pytest.fixture
def written(summary, tmp_path):
    page = write(*summary, tmp_path)
    assert page == tmp_path / "comparison.html"
    return tmp_path


def test_the_csv_has_every_figure_of_every_seed(written):
    table = pd.read_csv(written / "results.csv")
    assert len(table) == 9 * len(ENDINGS) * len(MEASURES)
    row = table[(table["method"] == "vanilla") & (table["seed"] == 2)]
    row = row[row["measure"] == "unique classes, other site"]
    assert row["mean_auroc"].tolist() == pytest.approx([0.55, 0.55])
    lacking = table[(table["strategy"] == "fedbn") & (table["measure"] == "all classes")]
    assert lacking["mean_auroc"].isna().all()


def test_the_json_has_every_number_of_the_page(written, summary):
    values = json.loads((written / "comparison.json").read_text())
    assert (values["format"], values["version"], values["seeds"]) == (1, "1.2.3", 3)
    assert values["setup"]["sites"] == ["nih", "chexpert"]
    surgical, fedbn, _, failed = values["rows"]
    other = surgical["mean_auroc"]["equal rounds"]["unique classes, other site"]
    assert other == pytest.approx({"mean": 0.75, "low": 0.75, "high": 0.75, "seeds": 3})
    assert fedbn["mean_auroc"]["equal rounds"]["all classes"] is None
    assert (surgical["trained"], failed["trained"]) == (3, 0)
    assert surgical["stopped"] == [{"best": 2, "made": 4}] * 3
    verdicts = [f["verdict"] for claim in values["claims"] for f in claim["findings"]]
    assert verdicts.count("reproduced") == 4
    assert values["equal_classes"]["verdict"] == "reproduced"
    assert list(values["failures"]) == ["partial_loss-fedbn+-seed0"]


def test_the_page_escapes_what_comes_from_outside(summary):
    page = render(summary[0])
    assert "no &lt;disk&gt;" in page and "<disk>" not in page


def test_the_page_shows_figures_verdicts_and_gaps(summary):
    page = " ".join(render(summary[0]).split())
    assert '<td>0.750<span class="ends">0.750\N{EN DASH}0.750</span></td>' in page
    assert '<td class="missing">not defined</td>' in page
    assert '<td class="missing">failed</td>' in page
    assert "<strong>reproduced in 4 of 24 comparisons, not decided in 20</strong>" in page
    assert "over seeds 0 to 2 (each with patients of its own)" in page


def test_ids_are_unique_in_the_page(summary):
    ids = re.findall(r' id="([^"]*)"', render(summary[0]))
    assert len(ids) == len(set(ids))


def test_a_method_stands_once_over_its_strategies(summary):
    page = render(summary[0])
    assert page.count('<th scope="row">Surgical aggregation</th>') == len(ENDINGS)


class TestFigures:
    def test_every_row_and_every_measure_has_its_place(self, summary):
        root = ElementTree.fromstring(figures.aurocs(summary[0], "one"))
        said = [" ".join(t.itertext()) for t in root.iter() if t.tag.endswith("text")]
        for wanted in (*MEASURES, "Vanilla FL (fedbn+)", "not defined", "failed"):
            assert wanted in said

    def test_every_pair_of_a_claim_has_its_place(self, summary):
        verdict = summary[0].verdicts[0]
        root = ElementTree.fromstring(figures.differences(verdict, "two"))
        said = [" ".join(t.itertext()) for t in root.iter() if t.tag.endswith("text")]
        assert "Surgical aggregation against Vanilla FL (fedbn+)" in said

    def test_the_colour_of_a_difference_is_that_of_its_verdict(self, summary):
        drawn = figures.differences(summary[0].verdicts[0], "two").lower()
        assert figures.VERDICT_LOOKS["reproduced"][0].lower() in drawn
        assert figures.VERDICT_LOOKS["not reproduced"][0].lower() not in drawn

"""The HTML page of a run report."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from cxr_study.evaluation.summary import Refusal, Summary
from cxr_study.reports.run.render import Example, predictions, render, write_report

EVIL = "<script>alert('x')</script>&\""


def example(image=None, truth=("Fracture",), held=("Edema", "Hernia"), **probabilities):
    """A picture from nih, black unless given."""
    image = np.zeros((64, 64), np.uint8) if image is None else image
    return Example("nih", image, list(truth), probabilities, set(held))


class Page(HTMLParser):
    """Collects the text, the tags and every attribute of a page; checks that tags match."""

    VOID = ("meta", "img", "path", "use", "rect", "br")

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.open, self.words = [], [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        """All text, with single spaces."""
        return " ".join(" ".join(self.words).split())


class TestSelfContained:
    def test_nothing_is_loaded_from_anywhere(self, summary):
        html = render(summary, [example(Edema=0.5)])
        addresses = [v for k, v in Page(html).attributes if k in ("src", "href", "xlink:href")]
        assert addresses
        assert all(address.startswith(("data:image/png;base64,", "#")) for address in addresses)
        assert not re.search(r"https?://|file:|@import|url\((?!#)", html)
        assert not {"script", "link", "iframe", "object"} & set(Page(html).tags)

    def test_twelve_pictures_stay_below_one_and_a_half_megabytes(self, summary):
        noise = np.random.default_rng(0).integers(0, 256, (512, 512), dtype=np.uint8)
        html = render(summary, [example(noise, Edema=0.5)] * 12)
        assert len(html.encode()) < 1_500_000


class TestEscapes:
    def test_class_site_and_reason_are_text(self, summary):
        text = summary.to_json().replace("Hernia", json.dumps(EVIL)[1:-1]).replace("nih", "<b>nih")
        changed = dataclasses.replace(
            Summary.from_json(text), refusals=(Refusal(1, "<b>nih", EVIL),), title=EVIL
        )
        page = Page(render(changed, [example(truth=[EVIL], **{EVIL: 0.5})]))
        assert not {"script", "b"} & set(page.tags)
        assert EVIL in page.text


@pytest.fixture(scope="module")
def page(summary):
    """The report without pictures."""
    return Page(render(summary, []))


class TestSays:
    def test_the_answer_and_its_limits(self, page):
        text = page.text
        assert "mean AUROC 0.81 (0.71\u20130.91) for 2 of 3 classes at nih" in text
        assert "Phantom data. The pictures are generated" in text
        assert "Research only, not for diagnosis" in text

    def test_undefined_classes_with_reason_and_counts(self, page):
        text = page.text
        assert "nih global and own no positive image in the test split Hernia (0 / 100)" in text

    def test_best_round(self, page):
        text = page.text
        assert "Best round: 1 , with a mean validation BCE of 0.250 over the sites that" in text
        assert "1 (best) 0.2500" in text

    def test_which_classes_a_site_holds_and_lacks(self, page):
        text = page.text
        assert "Edema labels it global 0.875" in text
        assert "Fracture lacks it global 0.750" in text

    def test_who_taught_what(self, page):
        labels = [v for k, v in page.attributes if k == "aria-label"]
        assert (labels.count("taught"), labels.count("lacks it")) == (4, 2)

    def test_a_class_held_but_not_taught(self, summary):
        taught_by = {**summary.taught_by, "Hernia": ()}
        html = render(dataclasses.replace(summary, taught_by=taught_by), [])
        assert html.count('aria-label="labels it, taught nothing"') == 1

    def test_refusals(self, summary, page):
        refused = dataclasses.replace(summary, refusals=(Refusal(1, "nih", "holds NaN"),))
        assert "1 nih holds NaN" in Page(render(refused, [])).text
        tested = dataclasses.replace(summary, refusals=(Refusal(None, "nih", "late", "test"),))
        assert "test nih late" in Page(render(tested, [])).text
        assert "None: every result" in page.text

    def test_where_the_time_went(self, page):
        text = page.text
        assert "training 50.0 s (41 %) validation 6.0 s (5 %) rest 1 min 07 s (54 %)" in text

    def test_degenerate_runs_too(self, degenerate):
        assert "Two hospitals" in Page(render(degenerate, [])).text


class TestExamples:
    def test_classes_the_site_does_not_label_are_marked(self, summary):
        html = render(summary, [example(Edema=0.25, Fracture=0.875)])
        text = Page(html).text
        assert "nih, present: Fracture (not labelled here)" in text
        assert "Fracture 88 % Edema 25 %" in text
        assert html.count('class="bar lacked"') == 1

    def test_present_classes_are_shown_however_improbable(self):
        shown = predictions(example(**dict.fromkeys("abcdefg", 0.5), Fracture=0.125))
        assert [line.class_name for line in shown] == ["a", "b", "c", "d", "e", "Fracture"]
        assert [line.present for line in shown] == [False] * 5 + [True]

    def test_a_present_class_the_model_lacks_has_no_probability(self, summary):
        (line,) = predictions(example())
        assert line.probability is None
        assert "not a class of the model" in Page(render(summary, [example()])).text

    def test_small_pictures_are_enlarged_pixel_by_pixel(self, summary):
        large = np.zeros((224, 224), np.uint8)
        assert 'class="crisp"' in render(summary, [example(Edema=0.5)])
        assert 'class="crisp"' not in render(summary, [example(large, Edema=0.5)])


class TestWriteReport:
    def test_writes_the_page_and_an_equal_summary_and_nothing_else(self, summary, tmp_path):
        path = write_report(summary, [], tmp_path / "new" / "report")
        assert path.read_text(encoding="utf-8") == render(summary, [])
        assert Summary.from_json((path.parent / "summary.json").read_text("utf-8")) == summary
        assert sorted(p.name for p in path.parent.iterdir()) == ["report.html", "summary.json"]

    def test_a_report_that_fails_leaves_the_last_one(self, summary, tmp_path):
        path = write_report(summary, [], tmp_path)
        before = path.read_bytes(), (tmp_path / "summary.json").read_bytes()
        with pytest.raises(ValueError, match="wall_seconds"):
            write_report(dataclasses.replace(summary, wall_seconds=np.inf), [], tmp_path)
        with pytest.raises(ValueError, match="uint8"):
            write_report(summary, [example(np.zeros((8, 8)))], tmp_path)
        assert before == (path.read_bytes(), (tmp_path / "summary.json").read_bytes())


def test_a_run_that_stopped_early_says_so(summary):
    early = Page(render(dataclasses.replace(summary, stopped_early=True), [])).text
    assert "2 (stopped early; best: 1)" in early
    assert "stopped early" not in Page(render(summary, [])).text

"""The figures of a run report."""

import dataclasses
import re
from xml.etree import ElementTree

import pytest

from cxr_study.evaluation.summary import ClassAuroc
from cxr_study.reports.run import figures


def texts(svg):
    """Every piece of text in a figure."""
    return ["".join(e.itertext()) for e in ElementTree.fromstring(svg).iter() if e.tag == "text"]


@pytest.fixture
def drawn(summary):
    """Every figure of one report."""
    sites = [figures.class_aurocs(summary, site) for site in summary.sites]
    over_rounds = (figures.validation_bce, figures.validation_auroc, figures.round_times)
    return [*sites, *(draw(summary) for draw in over_rounds)]


def test_every_figure_is_one_svg_element_with_a_title(drawn):
    for svg in drawn:
        root = ElementTree.fromstring(svg)
        assert root.tag == "svg"
        assert root.get("aria-label")


def test_ids_are_unique_in_a_page_and_every_reference_has_one(drawn):
    ids = re.findall(r' id="([^"]*)"', "".join(drawn))
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', "".join(drawn))) == set(ids)


def test_best_round_is_marked(summary):
    assert "best: round 1, 0.250" in texts(figures.validation_bce(summary))


def test_curves_are_named_by_site(summary):
    assert {"nih", "chexpert", "mean"} <= set(texts(figures.validation_auroc(summary)))


def test_held_and_lacked_classes_are_told_apart_in_words(summary):
    found = texts(figures.class_aurocs(summary, "nih"))
    held, lacked = "Labelled at nih", "Not labelled at nih: learned from other sites"
    assert {held, lacked, "Edema", "Fracture"} <= set(found)
    assert "not defined: no positive image in the test split" in found


def test_class_names_are_text_and_never_formulas(summary):
    name = '<script>&"$x_1$'
    row = ClassAuroc("global", "nih", name, True, 0.75, 0.5, 0.875, 9, 9, "site")
    svg = figures.class_aurocs(dataclasses.replace(summary, test=(row,)), "nih")
    assert name in texts(svg)


class TestApart:
    def test_places_far_enough_apart_stay(self):
        assert figures._apart([0.25, 0.5], gap=0.25) == [0.25, 0.5]

    def test_crowded_places_spread_around_their_middle(self):
        assert figures._apart([0.5, 0.5, 0.5], gap=0.25) == [0.25, 0.5, 0.75]

    def test_places_stay_inside_the_axes(self):
        assert figures._apart([1.0, 1.0, 1.0], gap=0.25) == [0.5, 0.75, 1.0]

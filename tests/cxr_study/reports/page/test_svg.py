"""Figures as parts of a page."""

import re
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.figure import Figure

from cxr_study.reports.page.svg import SITES, STYLE, short, site_styles, svg


def drawn(name="bars", title="Bars", label="bars"):
    """A figure with two hatched bars, and a label."""
    with mpl.rc_context(STYLE):
        figure = Figure((2, 2))
        axes = figure.add_axes((0.2, 0.2, 0.7, 0.7))
        axes.bar([0, 1], [1, 2], hatch="//")
        axes.set_xlabel(label)
        return svg(figure, name, title)


def test_is_one_element_with_a_title_that_cannot_leave_it():
    root = ElementTree.fromstring(drawn(title='"><b>&'))
    assert (root.tag, root.get("class"), root.get("aria-label")) == ("svg", "figure", '"><b>&')
    assert root.get("width") is None


def test_ids_are_unique_in_a_page_and_every_reference_has_one():
    page = drawn("one") + drawn("two")
    ids = re.findall(r' id="([^"]*)"', page)
    assert ids and len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page)) == set(ids)


def test_two_runs_draw_the_same():
    assert drawn() == drawn()


def test_nothing_is_said_about_who_drew_it_and_how():
    assert not re.search("<metadata|<style|<!--|matplotlib|http", drawn())


def test_text_stays_text_and_is_never_a_formula():
    name = '<script>&"$x_1$'
    found = [e.text for e in ElementTree.fromstring(drawn(label=name)).iter() if e.tag == "text"]
    assert name in found


def test_sites_differ_until_there_are_too_many():
    styles = site_styles(len(SITES) + 1)
    assert len(set(styles[:-1])) == len(SITES) and styles[-1] == styles[0]


def test_long_names_are_cut_to_the_length_asked_for():
    assert [short("Edema", n) for n in (4, 5)] == ["Ede…", "Edema"]

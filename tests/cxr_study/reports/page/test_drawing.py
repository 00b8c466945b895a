import re
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.figure import Figure

from cxr_study.reports.page.drawing import SITES, STYLE, name_rows, short, site_styles, svg


def drawn(name="bars", title="Bars", label="bars"):
    """A figure with two hatched bars, and a label."""
    with mpl.rc_context(STYLE):
        figure = Figure((2, 2))
        axes = figure.subplots()
        axes.bar([0, 1], [1, 2], hatch="//")
        axes.set_xlabel(label)
        return svg(figure, name, title)


def test_rows_are_named_at_their_places_or_not_at_all():
    axes = Figure().subplots()
    name_rows(axes, ["a", "b"], [1, 3])
    assert list(axes.get_yticks()) == [1, 3]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    name_rows(axes, [])
    assert not len(axes.get_yticks())


def test_text_stays_text_is_never_a_formula_and_cannot_leave_the_element():
    label = '<script>&"$x_1$'
    element = drawn(title='"><b>&', label=label)
    root = ElementTree.fromstring(element)
    assert (root.tag, root.get("class"), root.get("aria-label")) == ("svg", "figure", '"><b>&')
    assert root.get("width") is None
    assert label in [e.text for e in root.iter() if e.tag == "text"]
    assert not re.search("<metadata|<style|<!--|matplotlib|http", element)


def test_ids_are_unique_in_a_page_have_references_and_two_runs_draw_the_same():
    page = drawn("one") + drawn("two")
    ids = re.findall(r' id="([^"]*)"', page)
    assert ids and len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page)) == set(ids)
    assert drawn() == drawn()


def test_sites_differ_until_there_are_too_many_and_long_names_are_cut():
    styles = site_styles(len(SITES) + 1)
    assert len(set(styles[:-1])) == len(SITES) and styles[-1] == styles[0]
    assert [short("Edema", n) for n in (4, 5)] == ["Ede…", "Edema"]

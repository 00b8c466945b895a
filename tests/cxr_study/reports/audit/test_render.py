import dataclasses
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from cxr_study.common.wording import Notice
from cxr_study.data.census.across_sites import compare
from cxr_study.data.census.pixels import BINS, SIDE, Thumbnails
from cxr_study.data.census.samples import Sample
from cxr_study.data.census.shareable_census import share
from cxr_study.reports.audit.render import SitePage, render

VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """The text, the ids and what is left open of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.open, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def pages(census, shared):
    """Two sites at hand."""
    sample = Sample(np.eye(64, dtype=np.uint8), ["Edema", "Mass"])
    return [
        SitePage(
            dataclasses.replace(census, site=name),
            dataclasses.replace(shared, site=name),
            np.arange(BINS),
            [sample],
        )
        for name in ("one", "<two>")
    ]


@pytest.fixture
def html(pages):
    values = np.random.default_rng(0).normal(size=(40, SIDE * SIDE))
    own = Thumbnails(values, [str(i) for i in range(40)])
    return render(
        compare([page.shared for page in pages], {"one": own}), pages, [Notice("First.", "Told.")]
    )


def test_the_page_is_whole_and_every_id_stands_once(html):
    page = Page(html)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))


def test_the_page_needs_nothing_else(html):
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", html)
    assert "default-src 'none'" in html and "<script" not in html


def test_names_are_text_and_not_markup(html):
    assert "<two>" not in html and "&lt;two&gt;" in html


def test_notices_come_before_everything_that_is_counted(html):
    text = Page(html).text
    assert text.index("First. Told.") < text.index("Notices for one") < text.index("Across sites")


def test_every_section_of_a_site_is_there(html):
    text = Page(html).text
    for words in (
        "less other views", "2 images cannot be used.", "Images positive for both",
        "median 40, quartiles 35 and 41, range 34 to 90; 1 unknown", "Edema and Mass",
        "They are images of patients",
    ):  # fmt: skip
        assert words in text, words


def test_labels_stand_side_by_side_with_the_policy_between(html):
    row = re.search(r'<th scope="row">Mass</th>(.*?)</tr>', html, re.S)[1]
    cells = [re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", row)]
    assert cells == [
        "1", "1", "3", "0", "1", "ignore", "1", "1", "4", "50.0 %", "0", "1", "0",
    ]  # fmt: skip


def test_the_part_across_sites_has_nothing_that_is_not_shared(large_census):
    small = share(large_census(4), 10, None, None)
    assert small.sex["unknown"] is None
    text = Page(render(compare([small], {}), [], [])).text
    assert "Comparison of sites" in text and "Nothing of this is known of here:" in text
    assert re.search(r"Sex F withheld M withheld unknown withheld", text)
    assert "stays at the site" not in text


def test_a_site_alone_is_not_compared(pages):
    text = Page(render(compare([pages[0].shared], {}), pages[:1], [])).text
    assert "Across sites" not in text and "Notices for one" in text

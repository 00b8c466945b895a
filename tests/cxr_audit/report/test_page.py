import dataclasses
import re

import numpy as np
import pytest

from cxr_audit.census.across_sites import compare
from cxr_audit.census.census import CellCount
from cxr_audit.census.pixels import hash_images
from cxr_audit.census.shareable_census import share
from cxr_audit.census.take_census import Sample, SiteCensus
from cxr_audit.report import audit_figures, audit_report
from cxr_study.common.wording import Notice
from html_page import Page


@pytest.fixture
def sites(census, shared):
    """Two sites at hand."""
    sample = Sample(np.eye(64, dtype=np.uint8), ["Edema", "Mass"])

    def site(name):
        hashes = hash_images(name, ["a.png"], sample.pixels[None], np.array([0]))
        counted, own = (dataclasses.replace(of, site=name) for of in (census, shared))
        return SiteCensus(counted, own, [sample], hashes)

    return [site("one"), site("<two>")]


@pytest.fixture
def page(sites):
    across = compare([site.shared for site in sites], [site.hashes for site in sites])
    return Page(audit_report.page(across, sites, [Notice("First.", "Told.")]))


def test_it_needs_nothing_else_and_says_all_of_a_site_notices_first(page):
    assert page.needs_nothing_else()
    assert "<two>" in page.text and "<two>" not in page.html
    places = [
        page.text.index(words)
        for words in (
            "First. Told.", "1 image of one is at <two> too. 1 pixel for pixel",
            "Notices for one", "2 images cannot be used.", "Across sites",
            "less other views", "median 40, quartiles 35 and 41, range 34 to 90; 1 unknown",
            "Images positive for both", "They are images of patients", "Edema and Mass",
        )
    ]  # fmt: skip
    assert places == sorted(places)
    # Labels stand side by side with the policy between.
    row = re.search(r'<th scope="row">Mass</th>(.*?)</tr>', page.html, re.S)[1]
    cells = [re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", row)]
    assert cells == ["1", "1", "3", "0", "1", "ignore", "1", "1", "4", "50.0 %", "0", "1", "0"]


def test_large_counts_of_classes_that_occur_together_are_rounded_to_the_nearest(census):
    counts = [[19_900, 9_960], [9_940, 999]]
    figure = audit_figures.cooccurrence(dataclasses.replace(census, cooccurrence=counts), "f")
    assert {"20k", "10k", "9.9k", "999"} <= set(re.findall(r">\s*([\d.]+k?)\s*<", figure))


def test_on_a_phone_counts_stay_a_table(page):
    kinds = re.findall(r'<table class="([^"]*)">', page.html)
    assert kinds.count("tallies") > 4 and "tallies by-row" not in kinds


def test_the_part_across_sites_has_nothing_that_is_not_shared(large_census):
    small = share(large_census(4), 10, None)
    assert small.sex["unknown"] is None
    text = Page(audit_report.page(compare([small]), [], [])).text
    assert "Comparison of sites" in text
    assert re.search(r"Sex F withheld M withheld unknown withheld", text)
    assert "stays at the site" not in text


def test_a_site_alone_is_not_compared(sites):
    text = Page(audit_report.page(compare([sites[0].shared]), sites[:1], [])).text
    assert "Across sites" not in text and "Notices for one" in text


def test_where_no_age_is_known_none_are_drawn(sites):
    def ages(census):
        site = dataclasses.replace(sites[0], census=census)
        return Page(audit_report.page(compare([site.shared]), [site], [])).text.count("Ages")

    census = sites[0].census
    no_image = dict.fromkeys(census.age, CellCount(0, 0)) | {"unknown": census.total}
    without = dataclasses.replace(census, age=no_image, age_quantiles=[])
    assert (ages(census), ages(without)) == (1, 0)

"""Reads a page of HTML: its text, tags, attributes, and whether every tag is closed."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = ("meta", "img", "path", "use", "rect", "br")


class Page(HTMLParser):
    """What is in a page; fails where a tag is not closed."""

    def __init__(self, html):
        super().__init__()
        self.html = html
        self.tags, self.attributes, self.open, self.words = [], [], [], []
        self.addresses = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag != "a":  # a link loads nothing
            self.addresses += [v for k, v in attributes if k in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        """All text, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def needs_nothing_else(self):
        """Whether nothing is loaded, and every id stands once and is the target of references."""
        inside = all(each.startswith(("data:image/png;base64,", "#")) for each in self.addresses)
        outside = re.search(r"https?://|file:|@import|url\((?!#)", self.html)
        ids = [value for name, value in self.attributes if name == "id"]
        programs = {"script", "link", "iframe", "object"} & set(self.tags)
        once = len(ids) == len(set(ids)) and references(self.html) <= set(ids)
        alone = inside and not outside and not programs
        return alone and once and "default-src 'none'" in self.html


def references(html):
    """Ids that are referred to."""
    return set(re.findall(r'(?:url\(#|href="#)([^)"]+)', html))


def texts(svg):
    """Every piece of text in a figure, which has a title."""
    root = ElementTree.fromstring(svg)
    assert root.tag == "svg" and root.get("aria-label")
    return ["".join(e.itertext()) for e in root.iter() if e.tag == "text"]

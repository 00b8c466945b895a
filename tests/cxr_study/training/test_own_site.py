"""A custom site by the name of its class."""

import sys

import pytest

from cxr_study.common.errors import InputError
from cxr_study.training.own_site import own_site

SITE = """
from surgical_aggregation.site.contract.site import Site

class Half(Site):
    @property
    def classes(self):
        return ("Edema",)

class Mine(Half):
    def __init__(self, site, size=32):
        super().__init__()
        self.site, self.size = site, size

    def model(self): ...
    def data(self, split, *, training=False, first_pass=0): ...
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    (tmp_path / "mine.py").write_text(SITE)
    monkeypatch.chdir(tmp_path)
    yield "mine"
    sys.modules.pop("mine", None)


def test_it_is_found_in_the_current_folder_and_arguments_have_their_types(mine):
    made = own_site("mine:Mine", ["site=a=b", "size=64"])
    assert (made.site, made.size, made.classes) == ("a=b", 64, ("Edema",))


@pytest.mark.parametrize(("name", "arguments", "message"), [
    ("mine", [], "a site needs module:Class, e.g. my.module:MySite; got 'mine'"),
    ("no_module:Mine", [], "no Mine in module 'no_module'"),
    ("mine:Other", [], "no Other in module 'mine'"),
    ("mine:Half", [], "mine:Half must be a concrete subclass of surgical_aggregation's Site"),
    ("sys:path", [], "sys:path must be a concrete subclass"),
    ("mine:Mine", [], "mine:Mine cannot be made: .*'site'.* Give --arg NAME=VALUE"),
    ("mine:Mine", ["site"], "--arg needs NAME=VALUE; got 'site'"),
])  # fmt: skip
def test_what_is_none_is_refused(mine, name, arguments, message):
    with pytest.raises(InputError, match=message):
        own_site(name, arguments)

"""Parts by name, of which a job's is never imported."""

import sys

import pytest

from cxr_study.common.errors import InputError
from cxr_study.common.named_parts import by_path, part


def test_a_part_is_ours_or_a_packages_and_never_a_path(tmp_path, monkeypatch):
    info = tmp_path / "offers-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offers\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[some.parts]\nwide = offers:WIDE\nours = offers:NOT\n")
    (tmp_path / "offers.py").write_text("WIDE = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = {"ours": 1, "tiny": None}
    found = [part("kind", name, "some.parts", own) for name in ("ours", "tiny", "wide")]
    assert found == [1, None, 3]
    for name, message in (("wid", "nearest known: wide"), ("os:system", "no kind 'os:system'")):
        with pytest.raises(InputError, match=message):
            part("kind", name, "some.parts", own)


def test_a_path_names_something_in_a_module_of_this_folder_or_of_pythons(tmp_path, monkeypatch):
    (tmp_path / "mine_here.py").write_text("PART = 7\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert (by_path("mine_here:PART"), by_path("os.path:sep")) == (7, "/")
    for name in ("mine_here:NONE", "none_here:PART"):
        with pytest.raises(InputError, match=r"there is no \w+ in module '\w+' \(.*current folder"):
            by_path(name)

"""`surgagg data audit`, as a person calls it."""

from functools import partial

import pytest

from typed import answer

pytestmark = pytest.mark.usefixtures("cache")
surgagg = partial(answer, "data")


def test_an_audit_is_a_page_and_what_may_be_shared(phantom, tmp_path):
    both = [phantom / "sites/chexpert.yaml", phantom / "sites/nih.yaml"]
    surgagg("audit", *both, "--out", tmp_path / "a", "--size", 16)
    page = (tmp_path / "a/audit.html").read_text()
    assert "chexpert" in page and "Support Devices" in page
    shared = [("--shared", tmp_path / f"a/shared/{name}.json") for name in ("nih", "chexpert")]
    surgagg("audit", *shared[0], *shared[1], "--out", tmp_path / "b")
    assert (tmp_path / "b/cross_site.html").is_file()
    assert "needs site files" in surgagg("audit", "--out", tmp_path, code=2)

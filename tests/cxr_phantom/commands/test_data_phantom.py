"""`surgagg data phantom`, as a person calls it."""

from functools import partial

import pytest

from cxr_study.data.sites.site_file import read_site_file
from typed import answer

pytestmark = pytest.mark.usefixtures("cache")
surgagg = partial(answer, "data")


def test_the_phantom_is_drawn_as_asked_with_its_second_csv(tmp_path):
    small = ("--images", 150, "--size", 16)
    output = surgagg("phantom", tmp_path / "p", "--sites", "mimic", *small)
    site_file = tmp_path / "p/sites/mimic.yaml"
    assert str(site_file) in output
    for file in sorted((tmp_path / "p/mimic").rglob("*.jpg"))[:4]:
        file.write_bytes(b"")
    surgagg("prepare", site_file, "--size", 8, code=1)
    surgagg("site", "mimic", tmp_path / "p/mimic", tmp_path / "own.yaml")
    metadata = tmp_path / "p/mimic/mimic-cxr-2.0.0-metadata.csv.gz"
    assert read_site_file(tmp_path / "own.yaml").metadata == metadata

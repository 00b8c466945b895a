"""`surgagg data partition`, as a person calls it."""

import re
from contextlib import suppress
from functools import partial

import pytest

from cxr_study.data.sites import new_site
from cxr_study.data.sites.patient_split import SPLITS
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.data.sites.split_file import read_split
from typed import answer, typed

pytestmark = pytest.mark.usefixtures("cache")
surgagg = partial(answer, "data")


def test_drawn_class_sets_share_what_is_asked_and_published_ones_are_default(phantom, tmp_path):
    out, nih = tmp_path / "cut", phantom / "sites/nih.yaml"
    drawn = ("--number", 3, "--sets", "drawn", "--shared", 2)
    surgagg("partition", nih, "--out", out, *drawn)
    labelled = [set(read_site_file(out / f"nih-{i}.yaml").classes) for i in (1, 2, 3)]
    assert len(set.intersection(*labelled)) == 2
    assert len(set.union(*labelled)) == 14
    surgagg("prepare", *sorted(out.glob("*.yaml")), "--size", 8)
    output = surgagg("partition", nih, "--out", tmp_path / "published", "--share", "1/2")
    assert "Nodule" in output
    [line] = [line for line in output.splitlines() if " nih-2 " in line]  # without what is unused
    patients, *images = map(int, re.findall(r" (\d+) ", line)[:5])
    counts = read_split(tmp_path / "published/split.csv").header["counts"]["nih-2"]
    assert "unused" in counts and images[-1] == sum(images[:-1])
    assert patients == sum(counts[split]["patients"] for split in SPLITS)


@pytest.mark.parametrize("option", ["--label-skew", "--quantity-skew"])
def test_with_a_skew_sites_differ_and_what_each_got_is_printed(phantom, tmp_path, option):
    out = tmp_path / "cut"
    output = surgagg("partition", phantom / "sites/nih.yaml", "--out", out, option, 0.5)
    header = read_split(out / "split.csv").header
    sizes = [sum(part["patients"] for part in each.values()) for each in header["counts"].values()]
    assert max(sizes) > 1.2 * min(sizes)
    for site in ("nih-1", "nih-2"):
        [line] = [line for line in output.splitlines() if f" {site} " in line]
        first = read_site_file(out / f"{site}.yaml").classes[0]
        assert f"{first} {header['positives'][site][first]}" in line


@pytest.mark.parametrize("error", [OSError("no disk"), KeyboardInterrupt()])
def test_where_it_fails_nothing_is_left_that_was_not_there(phantom, tmp_path, monkeypatch, error):
    def fail(*_):
        assert (tmp_path / "new/cut/split.csv").is_file()
        raise error

    monkeypatch.setattr(new_site, "repeated_images", fail)
    before = sorted(tmp_path.iterdir())
    with suppress(type(error)):
        assert typed("data", "partition", phantom / "nih", "--out", tmp_path / "new/cut").code
    assert sorted(tmp_path.iterdir()) == before


def test_of_a_download_the_images_at_hand_are_cut(phantom, tmp_path):
    for image in sorted((phantom / "nih/images").iterdir())[150:]:
        image.unlink()
    first, second = sorted((phantom / "nih/images").iterdir())[:2]
    second.write_bytes(first.read_bytes())
    out, pool = tmp_path / "cut", phantom / "nih"
    assert "11" in surgagg("partition", pool, "--out", out, "--number", 11, code=2)
    assert not out.exists()
    output = surgagg("partition", pool, "--out", out)
    others = int(first.name[:8] != second.name[:8])
    assert f"1 image of other names, the same file, {others}" in output
    assert f"first {second.name} (patient" in output and "'bad_images: 1'" in output
    files = sorted(out.glob("*.yaml"))
    assert [path.name for path in files] == ["nih-1.yaml", "nih-2.yaml"]
    surgagg("prepare", *files, "--size", 8, code=1)
    assert len(read_split(out / "split.csv").assignment) > 0
    assert "needs a new folder" in surgagg("partition", files[0], "--out", out, code=2)

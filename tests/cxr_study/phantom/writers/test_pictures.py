from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, UnidentifiedImageError

from cxr_study.phantom.patients.cohort import sample_cohort
from cxr_study.phantom.writers.official_layouts import SiteLayout
from cxr_study.phantom.writers.pictures import KINDS, damage, write_pictures


def write(folder, cohort, calls):
    names = [f"{row}.png" for row in range(len(cohort))]
    layout = SiteLayout("chexpert", folder / "train.csv", folder, names)
    write_pictures(cohort, layout, "chexpert", 32, np.random.default_rng(1), calls.append)
    return np.array([np.asarray(Image.open(folder / name), float) for name in names])


def test_findings_show_as_plainly_as_the_cohort_says(tmp_path):
    cohort, calls = sample_cohort("chexpert", 300, np.random.default_rng(0)), []
    faint, plain = (
        replace(cohort, visibility=np.full_like(cohort.visibility, v)) for v in (0.0, 1.0)
    )
    healthy = write(tmp_path / "none", replace(cohort, present=0 * cohort.present), calls)
    assert calls == [256, len(cohort) - 256]  # reported piece by piece
    faint, plain = (write(tmp_path / str(i), c, []) for i, c in enumerate((faint, plain)))
    assert np.abs(plain - healthy).mean() > 1.3 * np.abs(faint - healthy).mean() > 0


@pytest.fixture(params=["png", "jpg"])
def images(request, tmp_path):
    names = [f"{number}.{request.param}" for number in range(20)]
    for seed, name in enumerate(names):
        pixels = np.random.default_rng(seed).integers(256, size=(16, 16), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / name)
    return names


def pixels(file):
    with Image.open(file) as picture:
        return np.asarray(picture)


def test_every_kind_is_what_its_name_says_and_the_rest_is_whole(tmp_path, images):
    before = {name: (tmp_path / name).read_bytes() for name in images}
    table = damage(tmp_path, images, 6, np.random.default_rng(0))
    of_kind = table.set_index("damage")
    assert sorted(of_kind.index) == sorted(KINDS)
    file = {kind: tmp_path / of_kind.loc[kind, "image"] for kind in KINDS}
    assert not file["missing"].exists()
    assert file["empty"].read_bytes() == b""
    assert not pixels(file["black"]).any()
    assert before[file["truncated"].name].startswith(file["truncated"].read_bytes())
    with pytest.raises(OSError):
        pixels(file["truncated"])
    with pytest.raises(UnidentifiedImageError):
        Image.open(file["text"])
    whole = of_kind.loc["duplicate", "duplicate_of"]
    assert file["duplicate"].read_bytes() == before[whole]
    for name in set(images) - set(table["image"]):
        assert (tmp_path / name).read_bytes() == before[name]


def test_damage_follows_from_the_seed_and_is_listed_in_the_images_order(tmp_path, images):
    tables = []
    for seed in (0, 0, 1):
        for number, name in enumerate(images):
            Image.new("L", (4, 4), number + 1).save(tmp_path / name)
        tables.append(damage(tmp_path, images, 9, np.random.default_rng(seed)))
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])
    places = tables[0]["image"].map(images.index)
    assert places.is_monotonic_increasing and len(places) == 9

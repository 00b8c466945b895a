import dataclasses
import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from cxr_audit.census.across_sites import NEAR, compare, equal_images
from cxr_audit.census.pixels import BINS, PER, hash_images
from cxr_audit.census.shareable_census import CensusError, read_shared, share
from cxr_audit.report.audit_view import equal_notices

MINI = Path(__file__).parents[3].parent / "shared/data/nih-mini/images"


def test_distance_is_0_for_the_same_grey_values_and_1_for_no_common_one(shared):
    black, white = [PER] + [0] * (BINS - 1), [0] * (BINS - 1) + [PER]
    greys = {"a": black, "b": black, "c": None, "d": white}
    sites = [dataclasses.replace(shared, site=n, intensity=grey) for n, grey in greys.items()]
    across = compare(sites)
    assert list(across.intensities) == ["a", "b", "d"]
    np.testing.assert_allclose(across.distances, [[0, 0, 1], [0, 0, 1], [1, 1, 0]])


def hashed(site, images):
    pixels = np.stack([np.asarray(image.convert("L").resize((64, 64))) for image in images])
    names = [f"{site}{number}" for number in range(len(images))]
    return hash_images(site, names, pixels, np.arange(len(images)))


def drawn(number, seed=0):
    """Pictures that are smooth, as radiographs are."""
    noise = np.random.default_rng(seed).integers(0, 256, (number, 12, 12), np.uint8)
    return [Image.fromarray(each).resize((200, 240), Image.Resampling.BICUBIC) for each in noise]


def jpeg(image):
    data = BytesIO()
    image.convert("L").save(data, "JPEG", quality=50)
    return Image.open(data)


COPIES = {
    "compressed": jpeg,
    "smaller": lambda image: image.resize((image.width // 2, image.height // 2)),
    "contrast": lambda image: ImageEnhance.Contrast(image.convert("L")).enhance(1.2),
}


def test_equal_pictures_are_found_with_the_most_alike_first_and_others_are_not():
    here, there = drawn(30), drawn(30, seed=1)
    copies = [here[3], jpeg(here[7]), *there]
    pairs = equal_images([hashed("a", here), hashed("b", copies), hashed("c", drawn(9, seed=2))])
    found = [(pair.image, pair.other_image, pair.exact) for pair in pairs]
    assert found == [("a3", "b0", True), ("a7", "b1", False)]
    assert pairs[0].bits == 0 <= pairs[1].bits <= NEAR


@pytest.mark.skipif(not MINI.is_dir(), reason=f"needs {MINI}")
@pytest.mark.parametrize("how", COPIES)
def test_copies_of_real_radiographs_are_found_and_different_patients_are_not(how):
    files = sorted(MINI.glob("*.png"))
    images = [Image.open(file) for file in files]
    patients = [file.name[:8] for file in files]
    copies = [COPIES[how](image) for image in images[:300]]
    pairs = equal_images([hashed("b", copies), hashed("a", images)])
    right = [pair for pair in pairs if pair.image[1:] == pair.other_image[1:]]
    assert len(right) >= 297
    for pair in pairs:
        assert patients[int(pair.image[1:])] == patients[int(pair.other_image[1:])]


def test_sites_that_share_hashes_find_that_they_have_equal_images(tmp_path, large_census):
    images, shared = drawn(20), []
    for name, part in (("a", images[:12]), ("b", images[10:])):
        own = share(large_census(), 10, None, hashed(name, part).values)
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(own.to_json() | {"site": name}))
        shared.append(read_shared(path))
    across = compare(shared)
    assert [(p.image, p.other_image, p.exact) for p in across.equal] == [("", "", False)] * 2
    (notice,) = equal_notices(across.equal)
    assert notice.heading == "2 images of a are at b too."
    values = json.loads((tmp_path / "a.json").read_text())
    assert values["image_hashes"] == sorted(values["image_hashes"])  # the order tells nothing
    (tmp_path / "a.json").write_text(json.dumps(values | {"image_hashes": ["00ff"]}))
    with pytest.raises(CensusError, match="'image_hashes' needs hashes of 256 bits each"):
        read_shared(tmp_path / "a.json")

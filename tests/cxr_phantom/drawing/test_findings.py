from functools import lru_cache

import numpy as np
import pytest

from cxr_phantom.drawing.anatomy import sample_anatomy
from cxr_phantom.drawing.canvas import per_picture
from cxr_phantom.drawing.chest import draw_chest, lung_border
from cxr_phantom.drawing.findings import Shown, deform, paint
from cxr_study.data.labels.vocabulary import UNION_CLASSES

N, SIZE = 40, 64


@lru_cache(maxsize=8)  # the healthy ones are asked for by every test
def draw(*names, visibility=0.5):
    """The same 40 chests, all with the named findings."""
    anatomy_rng, texture, *streams = np.random.default_rng(0).spawn(2 + len(UNION_CLASSES))
    number = {name: N if name in names else 0 for name in UNION_CLASSES}
    shown = {
        name: Shown(np.arange(n), np.full(n, visibility), rng)
        for (name, n), rng in zip(number.items(), streams, strict=True)
    }
    anatomy = deform(sample_anatomy(N, anatomy_rng), shown)
    chest = draw_chest(anatomy, SIZE, texture)
    paint(chest, shown)
    return chest


def regions(chest):
    """Where a radiologist looks: masks of shape (n, size, size)."""
    anatomy = chest.anatomy
    apex, base = per_picture(anatomy.apex), per_picture(anatomy.right_base)
    height = (chest.y - apex) / (base - apex)
    near_wall = chest.a > lung_border(anatomy, chest.y) - 0.2
    lung = chest.thorax > 0.5
    return {
        "lung": lung,
        "rim": lung & (near_wall | (height < 0.35)),
        "base": (height > 0.4) & (chest.a < 0.85),
        "hila": lung & (chest.a < 0.5) & (height > 0.3) & (height < 0.9),
        "cage": (height > 0) & (height < 1.1) & (chest.a > 0.1) & (chest.a < 0.75),
        "heart": (chest.a < 0.55) & (height > 0.5),
        "behind heart": (chest.a < 0.42) & (height > 0.5),
        "mediastinum": (chest.a < 0.35) & (height > 0.1),
        "body": chest.a < 1.1,
    }


REGION = dict.fromkeys(UNION_CLASSES, "lung") | {
    "Atelectasis": "base", "Fibrosis": "base", "Pleural Effusion": "base", "Emphysema": "cage",
    "Fracture": "cage", "Cardiomegaly": "heart", "Edema": "hila", "Hernia": "behind heart",
    "Enlarged Cardiomediastinum": "mediastinum", "Pleural Thickening": "rim",
    "Support Devices": "body",
}  # fmt: skip


@pytest.mark.parametrize("name", UNION_CLASSES)
def test_finding_changes_its_region_and_little_else_and_more_so_when_plain(name):
    healthy = draw()
    change = np.abs(draw(name).density - healthy.density)
    region = regions(healthy)[REGION[name]]
    noise = 0.06  # of density: what either site's grain amounts to
    assert ((change > 2 * noise).sum(axis=(1, 2)) >= 4).mean() > 0.9
    assert change[region].sum() > 0.6 * change.sum()
    shown = (draw(name, visibility=v).density for v in (0.0, 1.0))
    faint, plain = (np.abs(density - healthy.density).sum() for density in shown)
    assert 0 < faint < 0.8 * plain


def mean_change(name, where):
    healthy = draw()
    return (draw(name).density - healthy.density)[where(healthy)].mean()


def test_pneumothorax_is_dark_at_the_rim():
    healthy = draw()
    darker = draw("Pneumothorax").density - healthy.density < -0.05
    assert (darker.sum(axis=(1, 2)) > 30).mean() > 0.9
    assert (darker & regions(healthy)["rim"]).sum() > 0.8 * darker.sum()


def test_effusion_fills_the_costophrenic_angle_and_does_not_outshine_the_abdomen():
    def angle(chest):
        base = per_picture(chest.anatomy.right_base)
        wall = lung_border(chest.anatomy, chest.y)
        return (chest.thorax > 0.9) & (chest.y > base - 0.1) & (chest.a > wall - 0.12)

    assert mean_change("Pleural Effusion", angle) > 0.3
    healthy, ill = draw().density, draw("Pleural Effusion", visibility=1.0).density
    changed = np.abs(ill - healthy) > 0.1
    assert ill[changed].max() < 1.76  # ABDOMEN_DENSITY


def test_emphysema_lowers_and_flattens_the_diaphragm_and_darkens_the_lungs():
    ill, healthy = draw("Emphysema").anatomy, draw().anatomy
    assert (ill.right_base > healthy.right_base + 0.04).all()
    assert (ill.dome < 0.8 * healthy.dome).all()
    assert mean_change("Emphysema", lambda chest: chest.lung > 0.9) < -0.02


def test_atelectasis_takes_volume_from_the_side_that_shows_the_plates():
    healthy, ill = draw(), draw("Atelectasis")
    collapsed = ill.left == (ill.anatomy.collapse > 0)[:, None, None]
    assert ((healthy.diaphragm - ill.diaphragm > 0.03) == collapsed).all()
    denser = (ill.density - healthy.density > 0.15) & (ill.lung > 0.9)
    assert (denser & collapsed).sum() > 3 * (denser & ~collapsed).sum()


def test_hearts_widen_broken_ribs_are_stepped_and_a_mass_is_larger_than_a_nodule():
    healthy = draw()
    assert draw("Cardiomegaly").anatomy.heart_width.mean() > healthy.anatomy.heart_width.max()
    anatomy = draw("Fracture").anatomy
    assert (np.abs(anatomy.break_at) > 0.25).all()
    assert (anatomy.break_step >= 0.3).all()
    assert not healthy.anatomy.break_step.any()
    mass, nodule = (np.abs(draw(n).density - healthy.density) > 0.1 for n in ("Mass", "Nodule"))
    assert mass.sum() > 1.5 * nodule.sum()

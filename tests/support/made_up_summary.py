"""A small run to report: two sites, one class in common, one class each of its own."""

from dataclasses import replace

import pytest

from cxr_study.evaluation.summary_json import (
    Best,
    ClassAuroc,
    Difference,
    MeanAuroc,
    Round,
    SiteCalibration,
    SiteData,
    SiteRound,
    Splits,
    Summary,
)

CLASSES = {"nih": ("Edema", "Hernia"), "chexpert": ("Edema", "Fracture")}


def class_auroc(site, class_name, labelled, auroc, positives=40, model="global"):
    """A row of the test table; without an AUROC there is no interval either."""
    low, high = (None, None) if auroc is None else (auroc - 0.125, auroc + 0.0625)
    labels = "site" if labelled else "truth"
    found = (auroc, low, high, positives, 100 - positives)
    return ClassAuroc(model, site, class_name, labelled, *found, labels)


def site_round(bce, train_seconds=10.0):
    """A site's part in a round, with two seconds of validation."""
    return SiteRound(bce, 1 - bce, train_seconds, 2.0)


ABOUT = {
    "title": "Two hospitals", "job": "surgical", "data": "phantom", "version": "0.1.0",
    "note": "phantom data: shows the method's behaviour, not clinical performance", "seed": 7,
    "backbone": "small_densenet", "image_size": 64, "num_rounds": 2, "wall_seconds": 123.0,
}  # fmt: skip
SUMMARY = Summary(
    **ABOUT,
    best=Best(1, 0.25),
    union=("Edema", "Fracture", "Hernia"),
    sites={
        name: SiteData(classes, Splits(700, 100, 200), Splits(350, 50, 99), {"Edema": (70, 630)})
        for name, classes in CLASSES.items()
    },
    trained_by={"Edema": ("chexpert", "nih"), "Fracture": ("chexpert",), "Hernia": ("nih",)},
    rounds=(
        Round(0, 0.5, {"nih": site_round(0.5, 20.0), "chexpert": site_round(0.5)}),
        Round(1, 0.25, {"nih": site_round(0.25), "chexpert": site_round(0.25, 30.0)}),
        Round(2, 0.375, {"nih": site_round(0.375, None), "chexpert": site_round(0.375, None)}),
    ),
    test=(
        class_auroc("nih", "Edema", True, 0.875),
        class_auroc("nih", "Edema", True, 0.75, model="local"),
        class_auroc("nih", "Hernia", True, None, positives=0),
        class_auroc("nih", "Hernia", True, None, positives=0, model="local"),
        class_auroc("nih", "Fracture", False, 0.75, positives=5),
        class_auroc("nih", "Fracture", False, None, positives=5, model="local"),
        class_auroc("chexpert", "Edema", True, 0.875),
        class_auroc("chexpert", "Fracture", True, 0.875),
        class_auroc("chexpert", "Hernia", False, 0.75),
    ),
    differences=(Difference("nih", 0.125, 0.0625, 0.25),),
    calibration=(
        SiteCalibration("nih", 200, 0.05, "Edema", True, 0.5, 0.45),
        SiteCalibration("nih", 200, 0.35, "Fracture", False, 0.6, 0.25),
        SiteCalibration("nih", 200, 0.07, "Hernia", True, 0.07, 0.0),
    ),
    means=(
        MeanAuroc("global", "nih", "all", 0.8125, 0.71, 0.91, 2, 3),
        MeanAuroc("global", "nih", "labelled", 0.875, 0.75, 0.9375, 1, 2),
        MeanAuroc("global", "nih", "unlabelled", 0.75, 0.625, 0.8125, 1, 1),
        MeanAuroc("published", "nih", "all", 0.7, 0.6, 0.8, 2, 3),
        MeanAuroc("published", "nih", "labelled", 0.725, 0.625, 0.825, 1, 2),
        MeanAuroc("local", "nih", "labelled", 0.75, 0.625, 0.8125, 1, 2),
        MeanAuroc("global", "chexpert", "all", 0.84, 0.78, 0.88, 3, 3),
        MeanAuroc("global", "chexpert", "labelled", 0.875, 0.75, 0.9375, 2, 2),
        MeanAuroc("global", "chexpert", "unlabelled", 0.74, 0.61, 0.83, 1, 1),
    ),
)


@pytest.fixture(scope="session")
def summary():
    """The run above."""
    return SUMMARY


ONE_SITE = Round(1, 0.25, {"nih": site_round(0.25)})
NO_INTERVAL = tuple(replace(row, low=None, high=None) for row in SUMMARY.test)
DEGENERATE = {
    "one round": {"rounds": SUMMARY.rounds[:1], "best": Best(0, 0.5)},
    "no round": {"rounds": ()},
    "a site missing in a round": {"rounds": (SUMMARY.rounds[0], ONE_SITE)},
    "a round without a measured site": {"rounds": (Round(0, None, {}),)},
    "no local model": {
        "test": tuple(r for r in SUMMARY.test if r.model == "global"),
        "means": tuple(r for r in SUMMARY.means if r.model == "global"),
        "differences": (),
    },
    "a difference without interval": {"differences": (Difference("nih", 0.1, None, None),)},
    "no AUROC defined": {"test": tuple(replace(r, auroc=None) for r in NO_INTERVAL), "means": ()},
    "an AUROC without interval": {"test": NO_INTERVAL},
    "nothing tested": {"test": (), "means": ()},
    "no trained class": {"trained_by": {}},
    "a site of an earlier run": {"trained_by": {"Edema": ("gone", "nih")}},
    "no wall time": {"wall_seconds": 0.0},
}


@pytest.fixture(params=DEGENERATE.values(), ids=DEGENERATE.keys())
def degenerate(request):
    """A run without something that a report usually shows."""
    return replace(SUMMARY, **request.param)

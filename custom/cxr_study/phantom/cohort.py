"""Patients, visits and which findings they have.

Share of a site's images that show a finding (labelled by that site or not):

    finding                      nih  chexpert    finding                      nih  chexpert
    Atelectasis                  18%       18%    Lung Lesion                  10%       10%
    Cardiomegaly                 11%       15%    Lung Opacity                 16%       30%
    Consolidation                12%       12%    Mass                         13%       10%
    Edema                        10%       22%    Nodule                       14%       10%
    Emphysema                    10%       10%    Pleural Effusion             20%       28%
    Enlarged Cardiomediastinum   10%       11%    Pleural Other                10%       10%
    Fibrosis                     10%       10%    Pleural Thickening           11%       10%
    Fracture                     10%       10%    Pneumonia                    10%       10%
    Hernia                       10%       10%    Pneumothorax                 13%       13%
    Infiltration                 24%       12%    Support Devices              20%       35%

The order is that of the real datasets; the rare findings are lifted to 10% so that a test split of
400 images holds about 40 of each.
"""

from statistics import NormalDist

import numpy as np
import pandas as pd

from cxr_study.phantom.acquisition import choose_views
from cxr_study.vocabulary import UNION_CLASSES

PREVALENCE = {
    "nih": {
        "Atelectasis": 0.18,
        "Cardiomegaly": 0.11,
        "Consolidation": 0.12,
        "Edema": 0.10,
        "Emphysema": 0.10,
        "Enlarged Cardiomediastinum": 0.10,
        "Fibrosis": 0.10,
        "Fracture": 0.10,
        "Hernia": 0.10,
        "Infiltration": 0.24,
        "Lung Lesion": 0.10,
        "Lung Opacity": 0.16,
        "Mass": 0.13,
        "Nodule": 0.14,
        "Pleural Effusion": 0.20,
        "Pleural Other": 0.10,
        "Pleural Thickening": 0.11,
        "Pneumonia": 0.10,
        "Pneumothorax": 0.13,
        "Support Devices": 0.20,
    },
    "chexpert": {
        "Atelectasis": 0.18,
        "Cardiomegaly": 0.15,
        "Consolidation": 0.12,
        "Edema": 0.22,
        "Emphysema": 0.10,
        "Enlarged Cardiomediastinum": 0.11,
        "Fibrosis": 0.10,
        "Fracture": 0.10,
        "Hernia": 0.10,
        "Infiltration": 0.12,
        "Lung Lesion": 0.10,
        "Lung Opacity": 0.30,
        "Mass": 0.10,
        "Nodule": 0.10,
        "Pleural Effusion": 0.28,
        "Pleural Other": 0.10,
        "Pleural Thickening": 0.10,
        "Pneumonia": 0.10,
        "Pneumothorax": 0.13,
        "Support Devices": 0.35,
    },
}
HEALTHY = 0.3  # share of patients without any finding; a few more have none that their site labels
PERSISTENCE = 0.7  # share of a finding's variance that all visits of a patient have in common
MEAN_VISITS = 3
SEVERITY = 0.3  # loading of every finding on how ill a patient is

# What comes together: findings with a loading on the same cause.
_CAUSES = {
    "heart failure": {
        "Edema": 0.6,
        "Pleural Effusion": 0.5,
        "Cardiomegaly": 0.5,
        "Enlarged Cardiomediastinum": 0.3,
        "Lung Opacity": 0.3,
    },
    "infection": {
        "Consolidation": 0.6,
        "Pneumonia": 0.6,
        "Lung Opacity": 0.5,
        "Infiltration": 0.3,
    },
    "intensive care": {"Support Devices": 0.5, "Atelectasis": 0.4, "Pneumothorax": 0.3},
    "chronic lung disease": {"Emphysema": 0.4, "Fibrosis": 0.3, "Pleural Thickening": 0.3},
    "tumour": {"Mass": 0.4, "Nodule": 0.4, "Lung Lesion": 0.3},
}


def sample_cohort(site: str, images: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw the visits of a site: one image each.

    Args:
        site: "nih" or "chexpert".
        images: Number of images.
        rng: Source of randomness.

    Returns:
        One row per image, patients in order and their visits one after another: `person` (int from
        0), `visit` (int from 0), `view` ("PA" or "AP"), `sex` ("F" or "M"), `age` (int years), and
        one 0/1 integer column per class of `UNION_CLASSES`.
    """
    person, visit = _visits(images, rng)
    people = person[-1] + 1
    findings = _findings(site, person, rng)
    severity = findings.sum(axis=1)
    mean_severity = np.bincount(person, severity) / np.bincount(person)
    age = np.clip(44 + 3 * mean_severity + 15 * rng.standard_normal(people), 18, 94).astype(int)
    sex = np.where(rng.random(people) < 0.46, "F", "M")
    cohort = {
        "person": person,
        "visit": visit,
        "view": choose_views(site, images, rng),
        "sex": sex[person],
        "age": age[person],
    }
    return pd.DataFrame(cohort | dict(zip(UNION_CLASSES, findings.T, strict=True)))


def _visits(images: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Person and visit of each image; visits per person are geometric with mean `MEAN_VISITS`."""
    counts = rng.geometric(1 / MEAN_VISITS, size=images)
    person = np.repeat(np.arange(images), counts)[:images]
    first = np.searchsorted(person, person)
    return person, np.arange(images) - first


def _findings(site: str, person: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """0/1 of shape (images, classes): thresholds on correlated normals (a Gaussian copula)."""
    images, people = len(person), person[-1] + 1
    loadings = np.array(
        [[cause.get(name, 0.0) for cause in _CAUSES.values()] for name in UNION_CLASSES]
    )
    loadings = np.column_stack([loadings, np.full(len(UNION_CLASSES), SEVERITY)])
    own = np.sqrt(1 - np.square(loadings).sum(axis=1))

    def lasting(width: int) -> np.ndarray:
        constant = rng.standard_normal((people, width))[person]
        passing = rng.standard_normal((images, width))
        return np.sqrt(PERSISTENCE) * constant + np.sqrt(1 - PERSISTENCE) * passing

    tendency = lasting(loadings.shape[1]) @ loadings.T + own * lasting(len(UNION_CLASSES))
    threshold = [
        NormalDist().inv_cdf(1 - PREVALENCE[site][name] / (1 - HEALTHY)) for name in UNION_CLASSES
    ]
    ill = rng.random(people) >= HEALTHY
    return ((tendency > threshold) & ill[person, None]).astype(int)

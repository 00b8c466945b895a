"""Patients, their examinations and images, the findings these show, and their reports."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cxr_phantom.drawing.acquisition import SITES, choose_devices
from cxr_phantom.patients.real_statistics import (
    FRONTALS_PER_PATIENT,
    LATERALS_PER_FRONTAL,
    correlations,
    label_shares,
)
from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, UNION_CLASSES

# Share of a finding's variance that all examinations of a patient have in common: the median, over
# NIH's findings, of the tetrachoric correlation between consecutive images of a patient.
PERSISTENCE = 0.62
_SECOND_FRONTAL = {"nih": 0.0, "chexpert": 0.02, "mimic": 0.1}  # share of the examinations
_WITH_LATERAL = 0.9  # of the PA examinations; patients too ill to stand have a lateral less often


@dataclass(frozen=True, eq=False)
class Cohort:
    """The images of a site; patients in order, examinations of a patient one after another.

    Attributes:
        images: One row per image: `person` (int from 0), `study` (examination, int from 0, over all
            patients), `visit` (the same within the patient), `number` (of the image in its
            examination, from 0, frontals first), `lateral` (bool), `device` (index into the site's
            devices), `view` ("PA", "AP" or "lateral"), `sex` ("F" or "M"), `age` (int, years).
        present: 1 where an image shows a finding of `UNION_CLASSES`, else 0; (n, 20), int. All
            images of an examination agree.
        visibility: How plainly a present finding shows, from 0 to 1; (n, 20), float32.
    """

    images: pd.DataFrame
    present: np.ndarray
    visibility: np.ndarray

    def __len__(self) -> int:
        return len(self.images)


def sample_cohort(
    site: str, frontals: int, rng: np.random.Generator, rare_at_least: float = 0.1
) -> Cohort:
    """Draw the images of a site; laterals come on top of the `frontals`.

    At least the share `rare_at_least` of the images shows even the rarest finding; 0 gives the real
    shares.
    """
    person = _persons(FRONTALS_PER_PATIENT[site] / (1 + _SECOND_FRONTAL[site]), frontals, rng)
    device = choose_devices(site, frontals, rng)
    view = np.array([machine.view for machine in SITES[site]])[device]
    shown = 1 + (rng.random(frontals) < _SECOND_FRONTAL[site])
    lateral = rng.random(frontals) < _lateral_share(site, view)
    before = np.cumsum(shown) - shown
    studies = int(np.searchsorted(before, frontals))  # those that begin before all are there
    shown[studies - 1] = frontals - before[studies - 1]
    person, shown, lateral = person[:studies], shown[:studies], lateral[:studies]

    tendency = _tendency(person, rng)
    share = label_shares(site, rare_at_least)["present"].to_numpy()
    present = tendency > 1 - share
    age, sex = _people(person, present.sum(axis=1), rng)
    study = np.repeat(np.arange(studies), shown + lateral)
    number = np.arange(len(study)) - np.searchsorted(study, study)
    is_lateral = number >= shown[study]
    images = pd.DataFrame(
        {
            "person": person[study],
            "study": study,
            "visit": (np.arange(studies) - np.searchsorted(person, person))[study],
            "number": number,
            "lateral": is_lateral,
            "device": device[study],
            "view": np.where(is_lateral, "lateral", view[study]),
            "sex": sex[person[study]],
            "age": age[person[study]],
        }
    )
    visibility = np.clip((tendency - (1 - share)) / share, 0, 1).astype(np.float32)
    return Cohort(images, present[study].astype(int), visibility[study])


def read_reports(
    cohort: Cohort, site: str, rare_at_least: float, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Draw CheXpert's labels of the reports, the same for all images of an examination.

    Shares of uncertain and stated labels are CheXpert's. The less a finding shows, the more often
    it is called uncertain; an absent one that is neither uncertain nor stated is blank.

    Returns:
        For each of CheXpert's 14 observations the labels as read (see `label_table`), shape (n,).
        "No Finding" is positive where nothing but support devices is positive or uncertain, else
        blank.
    """
    shares = label_shares(site, rare_at_least)
    study = cohort.images["study"].to_numpy()
    labels: dict[str, np.ndarray] = {}
    for name in CHEXPERT_CLASSES:
        column = UNION_CLASSES.index(name)
        _, of_present, of_absent, stated = shares.loc[name]
        chance = rng.random(study[-1] + 1)[study]
        doubted = chance < _doubt(of_present, cohort.visibility[:, column])
        doubt_or_denial = [chance < of_absent, chance < of_absent + stated]
        absent = np.select(doubt_or_denial, [UNCERTAIN, NEGATIVE], BLANK)
        present = np.where(doubted, UNCERTAIN, POSITIVE)
        labels[name] = np.where(cohort.present[:, column] == 1, present, absent)
    disease = [labels[name] for name in CHEXPERT_CLASSES if name != "Support Devices"]
    found = np.isin(disease, (POSITIVE, UNCERTAIN)).any(axis=0)
    return labels | {"No Finding": np.where(found, BLANK, POSITIVE)}


def _persons(mean: float, studies: int, rng: np.random.Generator) -> np.ndarray:
    """Person of each examination; examinations per person are geometric with the given mean."""
    counts = rng.geometric(1 / mean, size=studies)
    return np.repeat(np.arange(studies), counts)[:studies]


def _lateral_share(site: str, view: np.ndarray) -> np.ndarray:
    """Probability that an examination has a lateral, so that the site's share comes out."""
    pa = np.average(view == "PA")
    wanted = LATERALS_PER_FRONTAL[site] * (1 + _SECOND_FRONTAL[site])
    of_pa = min(_WITH_LATERAL, wanted / max(pa, 1e-9))
    return np.where(view == "PA", of_pa, (wanted - of_pa * pa) / max(1 - pa, 1e-9))


def _tendency(person: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Tendency of each examination to each finding: a Gaussian copula, uniform on (0, 1)."""
    from scipy.special import ndtr  # here, for every command imports this module

    mixing = np.linalg.cholesky(correlations())
    lasting = rng.standard_normal((person[-1] + 1, len(UNION_CLASSES)))[person]
    passing = rng.standard_normal((len(person), len(UNION_CLASSES)))
    normal = np.sqrt(PERSISTENCE) * lasting + np.sqrt(1 - PERSISTENCE) * passing
    return np.asarray(ndtr(normal @ mixing.T))


def _people(
    person: np.ndarray, findings: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Age and sex of each person; who has more findings is older."""
    people = person[-1] + 1
    burden = np.bincount(person, findings) / np.bincount(person)
    age = np.clip(44 + 3 * burden + 15 * rng.standard_normal(people), 18, 94).astype(int)
    return age, np.where(rng.random(people) < 0.46, "F", "M")


def _doubt(share: float, visibility: np.ndarray) -> np.ndarray:
    """Probability of an uncertain label: falls with the visibility, and is `share` on average."""
    if share <= 0.5:
        return 2 * share * (1 - visibility)
    return 1 - 2 * (1 - share) * visibility

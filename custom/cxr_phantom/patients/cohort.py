"""Patients, their examinations and images, the findings these show, and their reports.

`label_counts.csv` holds the counts of the official files. Each site shows its findings as often as
the data set it imitates, and findings that this one does not label as often as CXR-LT 2023, which
labels all 20. Half of the uncertain labels count as present.

Findings correlate by latent normals: as in NIH (`nih_correlations.csv`) where NIH labels both, else
by common causes and by how ill a patient is (`loadings.csv`).
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_phantom.drawing.rendering import SITES, choose_devices
from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES

# Per patient: NIH 112,120 images of 30,805 patients; frontal images of CheXpert 191,027 of 64,540
# and of MIMIC-CXR-JPG 243,324 of 65,379.
FRONTALS_PER_PATIENT = {"nih": 3.64, "chexpert": 2.96, "mimic": 3.72}
"""Site -> mean number of frontal images of a patient."""
# Per frontal image: CheXpert 32,387 laterals; of MIMIC's 377,110 images 15,769 do not say their
# view and 243,324 are frontal.
LATERALS_PER_FRONTAL = {"nih": 0.0, "chexpert": 0.17, "mimic": 0.485}
WITHOUT_VIEW = 0.042  # share of MIMIC's images

_LABELLED_BY = {"nih": "nih", "chexpert": "chexpert", "mimic": "cxr-lt"}
_TRUE_OF_UNCERTAIN = 0.5
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
        visibility: How clearly a present finding shows, from 0 to 1; (n, 20), float32.
    """

    images: pd.DataFrame
    present: np.ndarray
    visibility: np.ndarray

    def __len__(self) -> int:
        return len(self.images)


def sample_cohort(
    site: str, frontals: int, rng: np.random.Generator, rare_at_least: float = 0.1
) -> Cohort:
    """Draw the patients, examinations and images of a site.

    Args:
        site: "nih", "chexpert" or "mimic".
        frontals: Number of frontal images; laterals are added to these.
        rng: Source of randomness.
        rare_at_least: Smallest share of the images that shows a finding; 0 for the real shares.
    """
    # Examinations of a person are geometric.
    mean = FRONTALS_PER_PATIENT[site] / (1 + _SECOND_FRONTAL[site])
    person = np.repeat(np.arange(frontals), rng.geometric(1 / mean, size=frontals))[:frontals]
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
    # Who has more findings is older.
    burden = np.bincount(person, present.sum(axis=1)) / np.bincount(person)
    age = 44 + 3 * burden + 15 * rng.standard_normal(len(burden))
    age = np.clip(age, 18, 94).astype(int)
    sex = np.where(rng.random(len(burden)) < 0.46, "F", "M")
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
    """Draw the labels that CheXpert's labeller would read from the reports.

    They are the same for all images of an examination. Shares of uncertain and stated labels are
    CheXpert's. The less clearly a finding shows, the more often it is labelled uncertain; an absent
    one that is neither uncertain nor stated is blank.

    Args:
        cohort: The images.
        site: "nih", "chexpert" or "mimic".
        rare_at_least: As for `sample_cohort`.
        rng: Source of randomness.

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


def _lateral_share(site: str, view: np.ndarray) -> np.ndarray:
    """Probability that an examination has a lateral, so that the site's share comes out."""
    pa = np.average(view == "PA")
    wanted = LATERALS_PER_FRONTAL[site] * (1 + _SECOND_FRONTAL[site])
    of_pa = min(_WITH_LATERAL, wanted / max(pa, 1e-9))
    return np.where(view == "PA", of_pa, (wanted - of_pa * pa) / max(1 - pa, 1e-9))


def _tendency(person: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Tendency of each examination to each finding: a Gaussian copula, uniform on (0, 1).

    Latent normals of an examination are the weighted sum of the patient's, which last, and its own;
    both are correlated as `correlations` gives. An image shows a finding where the tendency is
    above one minus the finding's share.
    """
    from scipy.special import ndtr  # here, for every command imports this module

    mixing = np.linalg.cholesky(correlations())
    lasting = rng.standard_normal((person[-1] + 1, len(UNION_CLASSES)))[person]
    passing = rng.standard_normal((len(person), len(UNION_CLASSES)))
    normal = np.sqrt(PERSISTENCE) * lasting + np.sqrt(1 - PERSISTENCE) * passing
    return np.asarray(ndtr(normal @ mixing.T))


def _doubt(share: float, visibility: np.ndarray) -> np.ndarray:
    """Probability of an uncertain label: falls with the visibility, and is `share` on average."""
    if share <= 0.5:
        return 2 * share * (1 - visibility)
    return 1 - 2 * (1 - share) * visibility


def label_shares(site: str, rare_at_least: float) -> pd.DataFrame:
    """How often a site's images show each finding, and how often reports state or doubt it.

    Args:
        site: "nih", "chexpert" or "mimic".
        rare_at_least: Lower limit of the shares of images that show a finding.

    Returns:
        One row per class of `UNION_CLASSES` and the columns `present` (share of the images that
        show it), and for CheXpert's classes (else NaN) `uncertain_if_present`,
        `uncertain_if_absent` and `stated_if_absent` (share of the images without it whose report
        calls it uncertain, or states that it is absent).
    """
    counts = _counts()
    shares = pd.DataFrame(index=list(UNION_CLASSES))
    own = _shares(counts[_LABELLED_BY[site]])
    shares["present"] = own["present"].reindex(UNION_CLASSES)
    shares["present"] = shares["present"].fillna(_shares(counts["cxr-lt"])["present"])
    shares["present"] = shares["present"].clip(lower=rare_at_least)
    cells = _shares(counts["chexpert"]).drop(columns="present")
    return shares.join(cells.loc[list(CHEXPERT_CLASSES)])


def _shares(counts: pd.DataFrame) -> pd.DataFrame:
    """Shares of labels from the counts of a data set; half of the uncertain ones are present."""
    true = _TRUE_OF_UNCERTAIN * counts["uncertain"]
    present, absent = counts["positive"] + true, counts["negative"] + counts["blank"] + true
    return pd.DataFrame(
        {
            "present": present / (present + absent),
            "uncertain_if_present": true / present,
            "uncertain_if_absent": true / absent,
            "stated_if_absent": counts["negative"] / absent,
        }
    )


@cache
def _counts() -> dict[str, pd.DataFrame]:
    """Data set -> counts of labels, by class, of the official files."""
    counts = pd.read_csv(Path(__file__).with_name("label_counts.csv"), comment="#")
    return {str(name): part.set_index("class") for name, part in counts.groupby("dataset")}


@cache
def correlations() -> np.ndarray:
    """Correlations of the latent normals, read-only.

    Returns:
        (20, 20) by `UNION_CLASSES`: NIH's where it labels both classes, else from `loadings.csv`.
    """
    loadings, nih = (
        pd.read_csv(Path(__file__).with_name(name), comment="#", index_col="class")
        for name in ("loadings.csv", "nih_correlations.csv")
    )
    wanted = loadings @ loadings.T
    wanted.loc[list(NIH_CLASSES), list(NIH_CLASSES)] = nih
    matrix: np.ndarray = wanted.to_numpy(copy=True)
    np.fill_diagonal(matrix, 1)
    matrix.flags.writeable = False
    return matrix

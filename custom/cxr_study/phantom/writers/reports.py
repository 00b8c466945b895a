"""What the labels say that a labeller reads from the report of a study."""

import numpy as np

from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, UNION_CLASSES
from cxr_study.phantom.patients.cohort import Cohort
from cxr_study.phantom.patients.real_counts import label_shares


def read_reports(
    cohort: Cohort, site: str, rare_at_least: float, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Draw what CheXpert's labeller makes of the reports, one label for all images of a study.

    Shares of uncertain and stated labels are CheXpert's. A finding that hardly shows is called
    uncertain more often than one that is plain to see; what is absent and neither uncertain nor
    stated is blank.

    Args:
        cohort: The images.
        site: The cohort's.
        rare_at_least: The cohort's.
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
        share = shares.loc[name]
        chance = rng.random(study[-1] + 1)[study]
        doubted = chance < _doubt(share["uncertain_if_present"], cohort.visibility[:, column])
        absent = np.select(
            [
                chance < share["uncertain_if_absent"],
                chance < share["uncertain_if_absent"] + share["stated_if_absent"],
            ],
            [UNCERTAIN, NEGATIVE],
            BLANK,
        )
        present = np.where(doubted, UNCERTAIN, POSITIVE)
        labels[name] = np.where(cohort.present[:, column] == 1, present, absent)
    disease = [labels[name] for name in CHEXPERT_CLASSES if name != "Support Devices"]
    found = np.isin(disease, (POSITIVE, UNCERTAIN)).any(axis=0)
    return labels | {"No Finding": np.where(found, BLANK, POSITIVE)}


def _doubt(share: float, visibility: np.ndarray) -> np.ndarray:
    """Probability of an uncertain label: falls with the visibility, and is `share` on average."""
    if share <= 0.5:
        return 2 * share * (1 - visibility)
    return 1 - 2 * (1 - share) * visibility

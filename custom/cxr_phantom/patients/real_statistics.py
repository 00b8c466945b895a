"""How often findings occur in the real data sets, and which occur together.

`label_counts.csv` holds the counts of the official files. Each site shows its findings as often as
the data set it imitates, and findings that this one does not label as often as CXR-LT 2023, which
labels all 20. Half of the uncertain labels count as present.

Findings correlate by latent normals: as in NIH (`nih_correlations.csv`) where NIH labels both, else
by common causes and by how ill a patient is.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES

# Per patient: NIH 112,120 images of 30,805 patients; frontal images of CheXpert 191,027 of 64,540
# and of MIMIC-CXR-JPG 243,324 of 65,379.
FRONTALS_PER_PATIENT = {"nih": 3.64, "chexpert": 2.96, "mimic": 3.72}
# Per frontal image: CheXpert 32,387 laterals; of MIMIC's 377,110 images 15,769 do not say their
# view and 243,324 are frontal.
LATERALS_PER_FRONTAL = {"nih": 0.0, "chexpert": 0.17, "mimic": 0.485}
WITHOUT_VIEW = 0.042  # share of MIMIC's images

_LABELLED_BY = {"nih": "nih", "chexpert": "chexpert", "mimic": "cxr-lt"}
_TRUE_OF_UNCERTAIN = 0.5
_SEVERITY = 0.3  # loading of every finding on how ill a patient is
_CAUSES = {
    "heart failure": {
        "Edema": 0.6,
        "Pleural Effusion": 0.5,
        "Cardiomegaly": 0.5,
        "Enlarged Cardiomediastinum": 0.3,
        "Lung Opacity": 0.3,
    },
    "infection": {"Consolidation": 0.6, "Pneumonia": 0.6, "Lung Opacity": 0.5, "Infiltration": 0.3},
    "intensive care": {"Support Devices": 0.5, "Atelectasis": 0.4, "Pneumothorax": 0.3},
    "pleural disease": {"Pleural Other": 0.4, "Pleural Thickening": 0.4},
    "tumour": {"Mass": 0.4, "Nodule": 0.4, "Lung Lesion": 0.3},
}


def label_shares(site: str, rare_at_least: float) -> pd.DataFrame:
    """How often a site's images show each finding, at least `rare_at_least`, and what reports say.

    Returns:
        One row per class of `UNION_CLASSES` and the columns `present` (share of the images that
        show it), and for CheXpert's classes (else NaN) `uncertain_if_present`,
        `uncertain_if_absent` and `stated_if_absent` (share of the images without it whose report
        calls it uncertain, or says that it is absent).
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
    counts = pd.read_csv(Path(__file__).with_name("label_counts.csv"), comment="#")
    return {str(name): part.set_index("class") for name, part in counts.groupby("dataset")}


@cache
def correlations() -> np.ndarray:
    """Correlations of the latent normals, (20, 20) by `UNION_CLASSES`, read-only."""
    severity = dict.fromkeys(UNION_CLASSES, _SEVERITY)
    loadings = pd.DataFrame({"severity": severity, **_CAUSES}).fillna(0)
    wanted = loadings @ loadings.T
    csv = Path(__file__).with_name("nih_correlations.csv")
    nih = pd.read_csv(csv, comment="#", index_col="class")
    wanted.loc[list(NIH_CLASSES), list(NIH_CLASSES)] = nih
    matrix = wanted.to_numpy(copy=True)
    np.fill_diagonal(matrix, 1)
    matrix.flags.writeable = False
    return matrix

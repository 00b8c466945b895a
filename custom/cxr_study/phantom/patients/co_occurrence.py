"""Which findings come together: correlations of the latent normals behind the findings.

Between two findings that NIH labels the correlation is NIH's own (`nih_correlations.csv`). Between
others it follows from causes that both have, and from how ill a patient is.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.data.labels.vocabulary import NIH_CLASSES, UNION_CLASSES

_SEVERITY = 0.3  # loading of every finding on how ill a patient is
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
    "pleural disease": {"Pleural Other": 0.4, "Pleural Thickening": 0.4},
    "tumour": {"Mass": 0.4, "Nodule": 0.4, "Lung Lesion": 0.3},
}


@cache
def correlations() -> np.ndarray:
    """Correlations of the latent normals, a positive definite matrix.

    Returns:
        Shape (20, 20), in the order of `UNION_CLASSES`, read-only.
    """
    loadings = np.array(
        [
            [_SEVERITY, *(cause.get(name, 0.0) for cause in _CAUSES.values())]
            for name in UNION_CLASSES
        ]
    )
    wanted = pd.DataFrame(loadings @ loadings.T, list(UNION_CLASSES), list(UNION_CLASSES))
    csv = Path(__file__).with_name("nih_correlations.csv")
    nih = pd.read_csv(csv, comment="#", index_col="class")
    wanted.loc[list(NIH_CLASSES), list(NIH_CLASSES)] = nih
    matrix = wanted.to_numpy(copy=True)
    np.fill_diagonal(matrix, 1)
    matrix.flags.writeable = False
    return matrix

"""One reader per dataset: from its official csv to the label table."""

from pathlib import Path

import pandas as pd

from cxr_study.readers import chexpert, nih
from cxr_study.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES

CLASSES = {"chexpert": CHEXPERT_CLASSES, "nih": NIH_CLASSES}
_READERS = {"chexpert": chexpert.read, "nih": nih.read}


def read(dataset: str, labels_csv: Path) -> pd.DataFrame:
    """Read the official csv of a dataset.

    Args:
        dataset: A key of `CLASSES`.
        labels_csv: The csv, `.csv` or `.csv.gz`.

    Returns:
        The label table (see `cxr_study.label_table`) with all classes of the dataset.

    Raises:
        TableError: The csv does not hold what the dataset promises.
    """
    return _READERS[dataset](labels_csv)

"""Classes of data sets, where `vocabulary` has no tuple of them; needs no pandas."""

from cxr_study.data.labels.vocabulary import class_name

VINDR_COLUMNS: tuple[tuple[str, ...], ...] = (
    ("Aortic enlargement",),
    ("Atelectasis",),
    ("Calcification",),
    ("Cardiomegaly",),
    ("Clavicle fracture",),
    ("Consolidation",),
    ("Edema",),
    ("Emphysema",),
    ("Enlarged PA",),
    ("ILD",),
    ("Infiltration",),
    ("Lung Opacity",),
    ("Lung cavity",),
    ("Lung cyst",),
    ("Mediastinal shift",),
    ("Nodule/Mass",),
    ("Pleural effusion",),
    ("Pleural thickening",),
    ("Pneumothorax",),
    ("Pulmonary fibrosis",),
    ("Rib fracture",),
    ("Other lesion",),
    ("COPD",),
    ("Lung tumor",),
    ("Pneumonia",),
    ("Tuberculosis",),
    ("Other diseases", "Other disease"),  # train, test
)
"""VinDr's columns, each with its spellings in the training and in the test file."""

VINDR = tuple(class_name(names[0], "vindr") for names in VINDR_COLUMNS)
"""The 27 classes of VinDr, in the order of the csv."""

PADCHEST = (
    "Atelectasis",
    "Cardiomegaly",
    "Consolidation",
    "Edema",
    "Emphysema",
    "Fibrosis",
    "Infiltration",
    "Mass",
    "Nodule",
    "Pleural Effusion",
    "Pleural Thickening",
    "Pneumonia",
    "Pneumothorax",
)
"""The classes of the study that PadChest names itself; the rest would have to be merged."""

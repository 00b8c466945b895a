"""The class sets of the published ablations: facts of Kulkarni et al., ML4H 2024."""

PUBLISHED_CLIENTS = {
    2: (
        (
            "Cardiomegaly",
            "Consolidation",
            "Edema",
            "Emphysema",
            "Fibrosis",
            "Hernia",
            "Infiltration",
            "Mass",
            "Pleural Effusion",
            "Pleural Thickening",
            "Pneumonia",
        ),
        (
            "Atelectasis",
            "Cardiomegaly",
            "Emphysema",
            "Mass",
            "Nodule",
            "Pleural Effusion",
            "Pneumothorax",
        ),
    ),
}
"""Number of sites K to the classes of each site, NIH cut into K."""

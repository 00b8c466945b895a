"""The phantom: procedural chest radiographs in the layouts of NIH, CheXpert and MIMIC-CXR.

For trying everything out where the real data are not at hand. The pictures are drawings; nothing
learned from them is of use in a clinic.
"""

PHANTOM = "phantom"
"""Stands for the demo study's site files in place of a folder."""

DEMO_SITES = ("nih", "chexpert")
"""The sites of the demo study."""

DRAWINGS = "drawings"
"""Stands for the body that was pre-trained on drawings, in place of a checkpoint."""

"""The phantom: procedural chest radiographs in the layouts of NIH, CheXpert and MIMIC-CXR.

For trying everything out where the real data are not at hand. The pictures are drawings; nothing
learned from them is of use in a clinic.
"""

from cxr_study.phantom.rendering import render
from cxr_study.phantom.source import SOURCE_CATEGORIES, source_images
from cxr_study.phantom.writing import PhantomError, write_phantom

__all__ = ["SOURCE_CATEGORIES", "PhantomError", "render", "source_images", "write_phantom"]

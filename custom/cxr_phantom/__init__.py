"""The phantom: procedural chest radiographs in the layouts of NIH, CheXpert and MIMIC-CXR.

For trying everything out where the real data are not at hand. The pictures are drawings; nothing
learned from them is of use in a clinic.
"""

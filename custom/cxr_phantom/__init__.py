"""The phantom: procedural chest radiographs in the layouts of NIH, CheXpert and MIMIC-CXR.

It replaces the real data in demos and tests. The pictures are drawings; nothing learned from them
is of use in a clinic.
"""

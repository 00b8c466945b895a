"""Surgical aggregation of ciphertexts, on FLARE's own homomorphic encryption.

Needs TenSEAL (`pip install surgical-aggregation[he]`) and the contexts that FLARE provisions
(`nvflare.lighter.impl.he.HEBuilder`; `nvflare poc prepare -he`): all sites hold one key, the server
holds none. The server adds and divides what it cannot read; names, shapes, metrics and numbers of
images stay legible.
"""

import sys

if "tensorflow" in sys.modules and "tenseal" not in sys.modules:
    raise ImportError(  # else the process would end with a segmentation fault
        "homomorphic encryption needs tenseal to be imported before TensorFlow; TensorFlow was "
        "first. Import surgical_aggregation.encryption, or tenseal, at the program's start."
    )

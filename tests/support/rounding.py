"""How far apart two computations of one network may be; two of one computation are equal."""

import numpy as np


def last_places(network):
    """Units in the last place between outputs in other batches, or of another kernel or library.

    A sum of n products, in whatever order and grouping, is off by at most n * eps / 2 of them
    (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1), so that two are at
    most n * eps apart. One layer passes its error on to the next: n is the sum over the layers of
    how many products each output has. Rounding goes either way, and about sqrt(n) is left of it,
    which leaves room for products that cancel.
    """
    return sum(int(np.prod(v.shape[:-1])) for v in network.weights if len(v.shape) > 1)

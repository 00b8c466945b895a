import numpy as np

from flare import Engine, context
from surgical_aggregation.site.contract.restricted_site import find_site
from surgical_aggregation.site.contract.site import Site


class Counting(Site):
    """A site whose images cannot be looked at for nothing."""

    classes = ("Edema",)
    asked = 0

    def model(self): ...

    def data(self, split, *, training=False, first_pass=0):
        import tensorflow as tf

        assert split == "train" and not training
        self.asked += 1
        labels = np.float32([[1], [np.nan], [0]])
        return tf.data.Dataset.from_tensor_slices((np.zeros(3), labels)).batch(2)


def find(site, policy):
    find_site("site", context(engine=Engine(site=site), policy=policy))


def test_training_labels_are_read_once_and_only_where_a_policy_counts():
    site = Counting()
    find(site, {"share": ["Edema"]})
    assert site.asked == 0
    for _ in range(3):
        find(site, {"min_positives": 1})
    assert site.asked == 1
    np.testing.assert_array_equal(site.training_labels, [[1], [np.nan], [0]])

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


class TestTrainingLabels:
    def test_are_those_of_the_training_split(self):
        np.testing.assert_array_equal(Counting().training_labels, [[1], [np.nan], [0]])

    def test_images_are_gone_through_once_however_often_the_policy_is_asked(self):
        site = Counting()
        for _ in range(3):
            find(site, {"min_positives": 1})
        assert site.asked == 1

    def test_nothing_is_gone_through_where_no_number_is_asked_for(self):
        site = Counting()
        find(site, {"share": ["Edema"]})
        assert site.asked == 0

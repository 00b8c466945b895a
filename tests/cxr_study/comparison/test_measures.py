import pytest

from cxr_study.comparison.measures import MEASURES, Score, mean_auroc

SHARED, OWN, OTHER, ALL = MEASURES


class TestMeanAuroc:
    def test_each_kind_of_class_goes_into_its_own_figures_at_every_site(self, made_up):
        scores = made_up.scores(shared=0.9, own=0.8, other=0.4)
        assert mean_auroc(scores, SHARED) == pytest.approx(0.9)
        assert mean_auroc(scores, OWN) == pytest.approx(0.8)
        assert mean_auroc(scores, OTHER) == pytest.approx(0.4)
        assert mean_auroc(scores, ALL) == pytest.approx(0.7)

    def test_every_class_of_every_site_counts_the_same(self):
        scores = [
            Score("nih", "Edema", True, True, True, 0.5),
            Score("nih", "Mass", True, True, True, 0.6),
            Score("chexpert", "Edema", True, True, True, 1.0),
        ]
        assert mean_auroc(scores, SHARED) == pytest.approx(0.7)

    def test_a_figure_is_not_defined_where_a_model_lacks_one_of_its_classes(self, made_up):
        scores = made_up.scores(own_models=True)
        assert mean_auroc(scores, SHARED) == pytest.approx(0.8)
        assert mean_auroc(scores, OWN) == pytest.approx(0.7)
        assert mean_auroc(scores, OTHER) is None
        assert mean_auroc(scores, ALL) is None

    def test_a_class_that_cannot_be_measured_on_a_split_is_left_out_for_every_model(self):
        scores = [
            Score("nih", "Edema", True, True, True, 0.5),
            Score("nih", "Hernia", True, True, True, None),
        ]
        assert mean_auroc(scores, SHARED) == 0.5
        assert mean_auroc(scores[1:], SHARED) is None

    def test_without_unique_classes_there_is_no_figure_of_them(self):
        assert mean_auroc([Score("nih", "Edema", True, True, True, 0.5)], OWN) is None

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from cxr_study.evaluation import bootstrap
from cxr_study.evaluation.bootstrap import difference_interval, mean_interval, resample

NAN = np.nan
CLASSES = ("Edema", "Mass", "Hernia", "Fracture", "Nodule")
AREAS = {"auroc": roc_auc_score, "auprc": average_precision_score}
RNG = np.random.default_rng(1)
LABELS = (RNG.random((120, 5)) < (0.3, 0.7, 0.02, 1, 0)).astype(float)
LABELS[::7, 1] = NAN
LABELS[:, 4] = NAN
PATIENTS = RNG.integers(0, 40, 120)


def scores(seed):
    """Scores with ties."""
    return np.round(np.random.default_rng(seed).random(LABELS.shape) + 0.3 * (LABELS == 1), 1)


def model(scored, *classes, **how):
    """A model of some classes, in that order, on resamples of the split."""
    columns = [CLASSES.index(name) for name in classes or CLASSES]
    how = {"patients": PATIENTS, "seed": 0, "resamples": 100, **how}
    return resample(LABELS[:, columns], scores(scored)[:, columns], classes or CLASSES, **how)


def column(*values):
    return np.array(values, dtype=float)[:, None]


@pytest.mark.parametrize("chunk", [10**6, 7 * 120])  # all resamples at once, and seven
def test_areas_are_scikit_learns_with_images_as_often_as_their_patient_is_drawn(chunk, monkeypatch):
    monkeypatch.setattr(bootstrap, "_CHUNK", chunk)
    got = model(2, seed=5, resamples=15)
    patient = np.unique(PATIENTS, return_inverse=True)[1]
    patients = patient.max() + 1
    chances = np.full(patients, 1 / patients)
    times_drawn = np.random.default_rng(5).multinomial(patients, chances, size=15)[:, patient]
    rows = [(got.values, np.ones(120, int))]
    for r, times in enumerate(times_drawn):
        rows.append(({name: drawn[r] for name, drawn in got.drawn.items()}, times))
    defined = 0
    for found, times in rows:
        for c, truth in enumerate(LABELS.T):
            used = ~np.isnan(truth) & (times > 0)
            both = len(set(truth[used])) == 2
            defined += both
            for name, area in AREAS.items():
                weighted = {"sample_weight": times[used]}
                wanted = area(truth[used], scores(2)[used, c], **weighted) if both else NAN
                np.testing.assert_allclose(found[name][c], wanted, rtol=1e-12)
    assert 30 < defined < 48  # the rare class is missing from some


@pytest.mark.parametrize(("labels", "scores", "message"), [
    (column(0, -1), column(0, 1), "need to be 0, 1 or NaN"),
    (column(0, 1), column(0, NAN), "1 are not"),
    (column(0, 1), column(0, 1, 2), r"got \(2, 1\) and \(3, 1\)"),
    ([0, 1], [0, 1], r"need one shape \(images, classes\)"),
    (column(0, 1, 1), column(0, 1, 1), "one entry per image, 3; got 2"),
])  # fmt: skip
def test_unusable_labels_and_scores_are_refused(labels, scores, message):
    with pytest.raises(ValueError, match=message):
        resample(labels, scores, ["Mass"], ["p", "q"], seed=0)


def test_ends_leave_as_much_out_on_either_side_of_the_values_that_are_defined():
    assert bootstrap.percentile_interval([NAN, *range(101), NAN]) == pytest.approx((2.5, 97.5))
    assert np.isnan(bootstrap.percentile_interval([NAN])).all()


@pytest.mark.parametrize(("positives", "images_each"), [(9, 1), (9, 3), (10, 1)])
def test_no_interval_rests_on_fewer_than_ten_patients(positives, images_each):
    """Nor does that of a mean or difference with such a class, whose resamples may lack it."""
    patients = np.repeat(np.arange(40), images_each)
    labels = np.column_stack([patients % 2, patients < positives]).astype(float)
    noise = np.random.default_rng(0).random(labels.shape) + labels / 2
    found = resample(labels, noise, CLASSES[:2], patients, seed=0, resamples=100)
    enough = positives >= bootstrap.FEWEST
    ends = bootstrap.class_intervals(found, "auroc")
    assert [bool(np.isfinite(low)) for low, _ in ends] == [True, enough]
    assert found.with_interval(CLASSES) == ["Edema", "Mass"][: 1 + enough]
    both = "auroc", CLASSES[:2]
    for of in (mean_interval(found, *both), difference_interval(found, found, *both)):
        assert of.classes == 2 and (of.low is None, of.high is None) == (not enough, not enough)
    alone = mean_interval(found, "auroc", ["Edema"])
    drawn = found.drawn["auroc"][:, 0]
    assert (alone.low, alone.high) == ends[0] == bootstrap.percentile_interval(drawn)


def test_a_class_that_every_resample_separates_without_error_has_no_interval():
    labels = np.repeat([[1.0, 1.0], [0.0, 0.0]], 20, axis=0)
    scores = np.column_stack([labels[:, 0], RNG.random(40)])
    found = resample(labels, scores, CLASSES[:2], np.arange(40), seed=3)
    assert found.values["auroc"][0] == 1
    for metric in AREAS:
        separated, other = bootstrap.class_intervals(found, metric)
        assert np.isnan(separated).all() and other[0] < found.values[metric][1] < other[1]
        alone = mean_interval(found, metric, CLASSES[:1])
        ahead = difference_interval(found, found, metric, CLASSES[:1])
        assert (alone.value, alone.low, alone.high) == (1, None, None)
        assert (ahead.value, ahead.low, ahead.high) == (0, None, None)
        same = difference_interval(found, found, metric, CLASSES[:2])
        assert (same.low, same.high) == (0, 0)


@pytest.mark.parametrize("metric", AREAS)
def test_a_mean_or_difference_is_of_the_classes_by_name_on_the_same_resamples(metric):
    one, other = model(2), model(3, "Hernia", "Mass", "Edema", "Fracture")
    wanted = []
    for each, columns in ((one, [0, 1]), (other, [2, 1])):
        values, drawn = each.values[metric][columns], each.drawn[metric][:, columns]
        wanted.append((values.mean(), drawn.mean(axis=1)))
        found = mean_interval(each, metric, ["Edema", "Mass"])
        assert (found.value, found.classes) == (pytest.approx(wanted[-1][0]), 2)
        ends = np.percentile(wanted[-1][1], [2.5, 97.5])
        assert (found.low, found.high) == pytest.approx(tuple(ends))
    found = difference_interval(one, other, metric, ["Edema", "Mass", "Fracture"])
    ends = np.percentile(wanted[0][1] - wanted[1][1], [2.5, 97.5])
    assert (found.low, found.high) == pytest.approx(tuple(ends))
    assert (found.value, found.classes) == (pytest.approx(wanted[0][0] - wanted[1][0]), 2)


def test_neither_is_defined_where_a_model_lacks_a_class_or_the_split_has_none():
    whole, partial = model(2), model(3, "Edema", "Fracture")
    for classes in (["Edema", "Mass"], ["Fracture"]):
        assert mean_interval(partial, "auroc", classes) is None
        assert difference_interval(partial, whole, "auroc", classes) is None
        assert difference_interval(whole, partial, "auroc", classes) is None
    once = resample(column(1, 0), column(2, 1), ["Mass"], ["p", "q"], seed=3, resamples=1)
    assert mean_interval(once, "auroc", ["Mass"]) == bootstrap.Estimate(1, None, None, 1)  # no ends


@pytest.mark.parametrize("how", [{"seed": 1}, {"resamples": 30}, {"patients": PATIENTS + 1}])
def test_models_that_were_not_resampled_alike_are_refused(how):
    with pytest.raises(ValueError, match=r"need the same patients, seed and number.*alike\."):
        difference_interval(model(2), model(3, **how), "auroc", CLASSES)

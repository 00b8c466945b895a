from dataclasses import replace

import pytest

from cxr_study.common.wording import Notice
from cxr_study.evaluation.summary_json import Contribution, Difference, RefusedResult, Round
from cxr_study.reports.run import clinical_view, run_figures, run_view
from cxr_study.reports.run.comparisons import NOT_MEASURED, comparisons
from cxr_study.reports.run.evaluate_run import render
from cxr_study.reports.run.notices import notices
from html_page import Page, texts
from made_up_summary import SUMMARY


def noted(summary, **changes):
    """Heading -> text, of a run with changes."""
    changed = replace(summary, **changes)
    return {notice.heading: notice.text for notice in notices(changed)}


def headlines(summary, **changes):
    """Both headlines, of a run with changes."""
    changed = replace(summary, **changes)
    return run_view.headline(changed), run_view.unlabelled_headline(changed)


def test_headlines_give_the_range_of_many_sites_and_where_unlabelled_classes_beat_chance(summary):
    site = summary.sites["nih"]
    row = run_view.mean(summary, "global", "chexpert", "all")
    aurocs = {"a": 0.5, "b": 0.75, "c": 0.85, "d": 0.9}
    means = [replace(row, site=name, auroc=value) for name, value in aurocs.items()]
    many, unmeasured = headlines(summary, sites=dict.fromkeys(aurocs, site), means=tuple(means))
    assert many.endswith("0.50 to 0.90 (median 0.80) at 4 sites.")
    assert unmeasured.endswith("could not be measured: no AUROC is defined.")
    few = [replace(row, few=not row.labelled) for row in summary.test]
    _, unmeasured = headlines(summary, means=(), test=tuple(few))
    assert unmeasured.endswith("measured: too few patients (Fracture and Hernia).")
    _, unmeasured = headlines(summary, means=(), data="elsewhere")
    assert unmeasured.endswith("measured: every site measured only those that it labels.")
    one, gained = headlines(summary)
    personal, none = headlines(summary, personal=True)
    assert personal.startswith("A model for every site: mean AUROC ") and personal != one
    assert none.startswith("A site's model has only the classes")
    assert gained.endswith("above chance (0.5) at both sites.")
    means = [replace(r, low=0.5) if r.site == "nih" else r for r in summary.means]
    doubtful = headlines(summary, means=tuple(means))[1]  # an interval reaches chance
    assert doubtful.endswith("above chance (0.5) at 1 of 2 sites.")
    whole = replace(site, classes=summary.union)
    same = headlines(summary, sites=dict.fromkeys(summary.sites, whole))[1]
    assert same.startswith("Every site labels every class")


@pytest.mark.usefixtures("no_figures")
def test_findings_whose_interval_reaches_chance_are_named_by_hospital(summary):
    words = "Not shown to be better than guessing: "
    assert not [line for line in run_view.headlines(summary) if words in line]
    low = {("nih", "Fracture"): 0.5, ("chexpert", "Edema"): 0.4, ("chexpert", "Hernia"): 0.3}
    test = [replace(row, low=low.get((row.site, row.class_name), row.low)) for row in summary.test]
    changed = replace(summary, test=tuple(test))
    named = f"{words}Fracture at nih; Edema and Hernia at chexpert."
    assert run_view.headlines(changed)[2] == named
    assert named in Page(render(changed, [])).text


def test_phantom_data_come_first_then_small_test_sets_and_undefined_aurocs(summary):
    found = noted(summary)
    assert list(found) == ["Phantom data.", "Small test set: wide intervals.", "Not defined."]
    phantom, small, undefined = found.values()
    assert phantom.endswith("Shows the method's behaviour, not clinical performance.")
    assert small.startswith("1 of 5 AUROCs rest on fewer than 30")
    assert "Fracture at nih, 0.75 (0.62\u20130.81), 5 positives, 95 negatives" in small
    assert undefined.startswith("1 of 6 AUROCs of the global model")
    good = tuple(row for row in summary.test if row.auroc is not None and row.positives > 30)
    assert noted(summary, data="real", note="", test=good) == {}
    assert noted(summary, data="real", note="a note", test=good) == {"Note.": "A note."}
    warning = Notice("Started from drawings.", "Not from radiographs.")
    warned = noted(summary, warnings=(warning,))
    assert next(iter(warned.items())) == (warning.heading, warning.text)  # before all others


ROUND = Round(1, 0.25, {"nih": SUMMARY.rounds[1].sites["nih"]})
FIRST = replace(SUMMARY.rounds[0], mean_validation_bce=0.3)
SAME = tuple(replace(row, auroc=0.5) for row in SUMMARY.test)


@pytest.mark.parametrize(("changes", "heading", "text"), [
    ({"refusals": (RefusedResult(1, "nih", "NaN"),)}, "Results left out.", "continued without 1"),
    ({"contributions": {"nih": Contribution(((0, 1),)), "chexpert": Contribution(((0, 0),))}},
     "Missing site.", "chexpert is not in round 1;"),
    ({"rounds": (FIRST, ROUND), "best": replace(SUMMARY.best, made="average")},
     "Not yet converged.", "is smallest after the last round: more"),
    ({"rounds": (replace(FIRST, mean_validation_bce=0.2), ROUND)}, "Not yet converged.", None),
    ({"rounds": (replace(FIRST, mean_validation_bce=None), ROUND)}, "Not yet converged.", None),
    ({"planned_rounds": 6}, "Not finished.", "2 of 6 rounds were made. surgagg continue"),
    ({"planned_rounds": 6, "stopped_early": True}, "Not finished.", None),
    ({"test": SAME}, "A constant model.", "the model gives every image the same"),
    ({"test": (replace(SAME[0], auroc=0.51), *SAME[1:])}, "A constant model.", None),
    ({"best": replace(SUMMARY.best, round=0)}, "No round was better than the start.",
     "it did not learn"),
    ({}, "No round was better than the start.", None),
])  # fmt: skip
def test_what_limits_a_run_is_stated_and_nothing_else(summary, changes, heading, text):
    found = noted(summary, **changes).get(heading)
    assert text in found if text else found is None


def contributions(**spans):
    """Site -> in which rounds, and the reason."""
    return {site: Contribution(rounds, "late") for site, rounds in spans.items()}


@pytest.mark.parametrize(("rounds", "taken", "expected"), [
    ((0, 3), {"a": ((0, 1),), "b": ((0, 0),)}, "b is not in round 1 (late); means there are"),
    ((0, 3), {"a": ((0, 1),), "b": ()}, "b contributed to no round (late): the model has"),
    # b joined a run that goes on from round 6; round 7 was dropped; round 9 is the final model
    ((6, 10), {"a": ((0, 6), (8, 8)), "b": ((8, 8),)}, "b is not in round 6 (late); means"),
    ((0, 3), {"a": ((0, 1),), "b": ((0, 1),)}, None),
])  # fmt: skip
def test_a_site_is_missing_in_rounds_that_were_made_without_it(summary, rounds, taken, expected):
    a = summary.rounds[0].sites["nih"]
    trained = [Round(number, 0.5, {"a": a}) for number in range(*rounds)]
    trained[-1] = Round(rounds[1] - 1, 0.5, {"a": replace(a, train_seconds=None)})
    sites = dict.fromkeys("ab", summary.sites["nih"])
    made = {"sites": sites, "rounds": tuple(trained), "num_rounds": rounds[1] - 1}
    found = noted(summary, **made, contributions=contributions(**taken)).get("Missing site.")
    assert found.startswith(expected) if expected else found is None


def test_the_reported_model_has_nothing_of_later_rounds(summary):
    taken = contributions(nih=((0, 2),), chexpert=((1, 2),))
    for best, chexpert, nih in ((2, "round 1", "rounds 0 and 1"), (1, "no round", "round 0")):
        of_best = replace(summary, best=replace(summary.best, round=best), contributions=taken)
        expected = f"nih ({nih}) and chexpert ({chexpert})"
        assert run_view.with_rounds(of_best) == expected
    nothing, missing = run_view.absences(of_best)
    why = "chexpert contributed to no round before the model of round 1"
    assert nothing == f"{why} (late): the model has nothing of it."
    assert missing.startswith("chexpert is not in round 0 (late); means there are")
    trained = clinical_view.statements(of_best, clinical_view.NO_FILES)["What it was trained on."]
    assert f"({why.removeprefix('chexpert ')})" in trained and "nih (labels" in trained
    initial = replace(of_best, best=replace(summary.best, round=0))
    assert run_view.absences(initial) == [missing]


@pytest.mark.parametrize(("positives", "negatives", "reason"), [
    (0, 9, "no positive image in the test split"), (9, 0, "no negative image in the test split"),
    (0, 0, "the test split has no label of it"), (9, 9, "the model has no such class"),
    (None, 9, "the site keeps the reason to itself"),
])  # fmt: skip
def test_why_an_auroc_is_not_defined_follows_from_counts(summary, positives, negatives, reason):
    row = replace(summary.test[2], positives=positives, negatives=negatives)
    assert row.left_out == reason


def test_rounds_name_the_best_model(summary):
    for number, name in enumerate(("the initial model", "the model of round 1", "the final model")):
        best = replace(summary.best, round=number)
        assert run_view.best_model(replace(summary, best=best)).startswith(name)
    refit = replace(summary.best, round=2, made="refit")
    assert "refitted" in run_view.best_model(replace(summary, best=refit))
    assert run_view.final_round(replace(summary, rounds=summary.rounds[:2])) is None


def test_classes_trained_by_most_sites_and_sites_of_this_run_come_first(summary):
    assert run_view.trained_order(summary) == ["Edema", "Fracture", "Hernia"]
    counts = run_view.trained_counts(summary)
    assert counts == "Trained: 1 class by 2 sites and 2 classes by 1 site."
    grown = replace(summary, trained_by={"Edema": ("gone", "nih")})
    assert run_view.sites(grown) == ["nih", "chexpert", "gone"]


def test_curves_are_named_by_site_with_the_best_round_marked(summary):
    found = texts(run_figures.validation_bce(summary))
    assert {"best: round 1, 0.250", "nih", "chexpert", "mean"} <= set(found)
    assert {"nih", "chexpert", "mean"} <= set(texts(run_figures.validation_auroc(summary)))


def test_labelled_and_unlabelled_classes_are_distinguished_in_words(summary):
    assert set(texts(run_figures.class_aurocs(summary, "nih"))) >= {
        "Labelled at nih", "Not labelled at nih: learned from other sites", "Edema", "Fracture",
        "not defined: no positive image in the test split",
    }  # fmt: skip


def test_rounds_are_written_with_how_many_were_planned(summary):
    cut = replace(summary, planned_rounds=6)
    assert run_view.rounds_made(cut) == "2 of 6 (best: 1)"
    assert run_view.rounds_made(replace(cut, stopped_early=True)) == "2 (stopped early; best: 1)"


ITS_OWN = "nih, on the classes that it labels itself: {}, against the model that it trains alone.{}"
KEEP = " It may keep its own model for these; the report compares them class by class."


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(("value", "low", "high", "few", "words", "advice"), [
    (0.125, 0.0625, 0.25, 0, "better by 0.125 (0.062 to 0.250)", ""),
    (-0.013, -0.026, -0.001, 2,
     "worse by 0.013 (0.001 to 0.026) without 2 classes of too few patients", KEEP),
    (-0.013, -0.026, 0.001, 0, "no difference that shows, -0.013 (-0.026 to +0.001)", ""),
    # No end of the interval is shown as 0.000.
    (0.0137, 0.0004, 0.0267, 0, "better by 0.0137 (0.0004 to 0.0267)", ""),
    (0.1, None, None, 0, "+0.100, without an interval", ""),
])  # fmt: skip
def test_whether_a_run_paid_is_stated(summary, value, low, high, few, words, advice):
    """For each hospital."""
    changed = replace(summary, differences=(Difference("nih", value, low, high, few=few),))
    expected = ITS_OWN.format(words, advice)
    assert run_view.headlines(changed)[2] == expected
    assert expected in Page(render(changed, [])).text


def test_other_models_have_a_line_by_kind_of_class_and_without_own_models_it_is_stated(summary):
    others = (
        Difference("nih", -0.154, -0.2, -0.1, against="before"),
        Difference("nih", 0.1, 0.05, 0.2, against="published", classes="unlabelled", few=1),
        Difference("chexpert", 0.1, 0.0, 0.2, against="published", classes="unlabelled"),
    )
    none = replace(summary, differences=())
    few = [replace(row, few=row.auroc is not None) for row in summary.test]
    assert comparisons(replace(none, test=tuple(few))) == [
        "nih: not compared with the model that it trains alone: too few patients (Edema); no "
        "positive image in the test split (Hernia).",
        "chexpert: not compared with the model that it trains alone: there is no such model.",
    ]
    federated = tuple(row for row in summary.test if row.model == "global")
    assert comparisons(replace(summary, differences=others, test=federated)) == [
        NOT_MEASURED,
        "Against the method as published, on the classes that a site does not label: nih better by "
        "0.100 (0.050 to 0.200) without 1 class of too few patients and chexpert no difference "
        "that shows, +0.100 (+0.000 to +0.200).",
        "Against the model that this run started from, on the classes that a site labels itself: "
        "nih worse by 0.154 (0.100 to 0.200).",
    ]
    assert "--local-models" in NOT_MEASURED


def test_the_models_of_a_table_are_those_that_were_measured_the_federations_first(summary):
    assert run_view.models(summary) == ["global", "published", "local"]
    assert run_view.models(replace(summary, means=())) == ["global"]


@pytest.mark.usefixtures("no_figures")
def test_classes_of_too_few_patients_are_listed_and_means_shown_with_and_without_them(summary):
    changes = {("nih", "Fracture"): {"few": True, "low": None, "high": None, "positives": 2}}
    test = [replace(row, **changes.get((row.site, row.class_name), {})) for row in summary.test]
    found = noted(summary, test=tuple(test))
    assert "Small test set: wide intervals." not in found
    few = found["Too few patients."]
    assert few.startswith("1 of 5 AUROCs rest on fewer than 10") and "Fracture at nih (2)" in few
    row = replace(summary.means[0], defined=1, few=1, with_few=0.7)
    assert row.over == "1 of 3 classes (0.700 with 1 of too few patients)"
    better = replace(summary.differences[0], few=2)
    changed = replace(summary, means=(row, *summary.means[1:]), differences=(better,))
    first = run_view.headline(changed)
    assert "for 1 of 3 classes at nih and" in first
    assert first.endswith("With 1 class of too few patients, the mean at nih would be 0.70.")
    line, _ = comparisons(changed)
    assert "without 2 classes of too few patients, against" in line
    assert row.over in Page(render(changed, [])).text
    none = replace(row, auroc=None, low=None, high=None, defined=0)
    changed = replace(changed, means=(none,))
    assert f"not defined over {none.over}" in Page(render(changed, [])).text


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize(("job", "made", "name"), [
    ("surgical", {"Strategy": "fedbn+"}, "Surgical aggregation, batch norm frozen (strategy: fedb"),
    ("surgical", {"Strategy": "fedavg"}, "Surgical aggregation, batch norm averaged (strategy: f"),
    ("mine", {"Strategy": "my.Own"}, "mine, own strategy (strategy: my.Own)"),
    ("vanilla", {}, "Vanilla federated learning"),
])  # fmt: skip
def test_the_method_is_named_with_what_happens_to_batch_norm(summary, job, made, name):
    changed = replace(summary, job=job, made=made)
    assert run_view.method(changed).startswith(name)
    assert run_view.method(changed) in Page(render(changed, [])).text


def test_calibration_is_by_site_and_kind_of_class_the_largest_error_first(summary):
    found = summary.calibration_groups()
    names = {key: [row.class_name for row in rows] for key, rows in found.items()}
    assert names == {("nih", True): ["Hernia", "Edema"], ("nih", False): ["Fracture"]}

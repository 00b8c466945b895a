import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from cxr_phantom.demo_data import PRETRAINED_BODY
from cxr_study.data.images.image_store import Images
from cxr_study.evaluation.predictions import Predictions
from cxr_study.evaluation.scores import SiteEvaluation
from cxr_study.evaluation.summary_json import NO_PATIENTS, SHARED_PATIENTS, RefusedResult, Summary
from cxr_study.reports.run import evaluate_run, run_warnings
from cxr_study.reports.run.evaluate_run import render, write_report
from cxr_study.reports.run.examples import Example, choose
from cxr_study.reports.run.run_warnings import warnings_of
from cxr_study.runs.finished_run import FinishedRun, RunFacts
from html_page import Page
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load
from surgical_aggregation.wire import variables as wire

EVIL = "<script>alert('x')</script>&\""


def example(image=None, truth=("Fracture",), labelled=("Edema", "Hernia"), **probabilities):
    """A picture from nih, black unless given."""
    image = np.zeros((64, 64), np.uint8) if image is None else image
    return Example("nih", image, list(truth), probabilities, set(labelled))


@pytest.fixture(scope="module")
def page(summary):
    """The report without pictures."""
    return Page(render(summary, []))


def test_names_and_reasons_are_text_and_nothing_is_loaded_from_anywhere(summary):
    text = summary.to_json().replace("Hernia", json.dumps(EVIL)[1:-1]).replace("nih", "<b>nih")
    refused = (RefusedResult(1, "<b>nih", EVIL),)
    changed = replace(Summary.from_json(text), refusals=refused, title=EVIL)
    page = Page(render(changed, [example(truth=[EVIL], **{EVIL: 0.5})]))
    assert not {"script", "b"} & set(page.tags) and "img" in page.tags
    assert EVIL in page.text and page.needs_nothing_else()


def test_it_says_how_good_the_model_is_and_what_went_wrong(summary, page):
    for words in (
        "mean AUROC 0.81 (0.71\u20130.91) for 2 of 3 classes at nih", "2 (best: 1)",
        "Phantom data. The pictures are generated", "Research only, not for diagnosis",
        "Hernia labels it global not defined: no positive image in the test split 0 100",
        "Best round: 1 , with a mean validation BCE of 0.250 over the sites that",
        "1 (best) 0.2500", "Edema labels it global 0.875",
        "Fracture does not label it global 0.750", "None: the server accepted every result",
    ):  # fmt: skip
        assert words in page.text
    refusals = (RefusedResult(1, "nih", "holds NaN"), RefusedResult(None, "nih", "late", "test"))
    text = Page(render(replace(summary, refusals=refusals, stopped_early=True), [])).text
    for words in ("1 nih holds NaN", "test nih late", "2 (stopped early; best: 1)"):
        assert words in text and words not in page.text


def test_on_a_phone_every_row_is_a_card_with_the_names_of_its_columns(page):
    tables = re.findall(r'(?s)<table class="([^"]*)">.*?<tbody>(.*?)</tbody>', page.html)
    assert [kind for kind, _ in tables if "by-row" not in kind] == ["matrix"] and len(tables) > 5
    for kind, rows in tables:
        cells, labels = re.findall("<t[hd] |<t[hd]>", rows), rows.count(" data-label=")
        assert labels == (0 if kind == "matrix" else len(cells)), kind
    assert '<td class="number" data-label="Specificity">' not in page.html
    spans = 'data-label="Threshold and what it reaches"'
    assert f'<td colspan="5" class="number quiet" {spans}>not assessed</td>' in page.html
    assert '<th scope="row" data-label="Mean AUROC on the test split of">nih' in page.html
    assert "content: attr(data-label)" in page.html


def test_who_trained_what(summary, page):
    idle = replace(summary, trained_by={**summary.trained_by, "Hernia": ()})
    for made, counts in ((page, [4, 2, 0]), (Page(render(idle, [])), [3, 2, 1])):
        labels = [value for name, value in made.attributes if name == "aria-label"]
        kinds = ("trained", "does not label it", "labels it, trained nothing")
        assert [labels.count(kind) for kind in kinds] == counts


def test_no_path_of_the_machine_is_on_the_page(summary):
    settings = {"initial_body": "/home/jane/initial.npz", "site_files": "{$CXR_SITES}"}
    text = Page(render(replace(summary, settings=settings), [])).text
    assert "initial_body initial.npz" in text and "/home" not in text and "{$CXR_SITES}" in text


def test_degenerate_runs_too(degenerate):
    assert "Two hospitals" in Page(render(degenerate, [])).text


def test_examples_mark_unlabelled_classes_and_have_small_pictures(summary):
    page = Page(render(summary, [example(Edema=0.25, Fracture=0.875)]))
    assert "nih, present: Fracture (not labelled here)" in page.text
    assert "Fracture 88 % Edema 25 %" in page.text
    assert page.attributes.count(("class", "bar unlabelled")) == 1
    assert "not a class of the model" in Page(render(summary, [example()])).text
    noise = np.random.default_rng(0).integers(0, 256, (512, 512), dtype=np.uint8)
    large = render(summary, [example(noise, Edema=0.5)] * 12)
    assert 'class="crisp"' not in large and len(large.encode()) < 1_500_000
    assert 'class="crisp"' in page.html  # enlarged pixel by pixel


def test_page_and_summary_are_written_together_or_not_at_all(summary, tmp_path):
    path = write_report(summary, [], tmp_path / "new" / "report")
    files = [path, path.parent / "summary.json"]
    before = [file.read_text(encoding="utf-8") for file in files]
    assert before[0] == render(summary, []) and Summary.from_json(before[1]) == summary
    with pytest.raises(ValueError, match="wall_seconds"):
        write_report(replace(summary, wall_seconds=np.inf), [], path.parent)
    with pytest.raises(ValueError, match="uint8"):
        write_report(summary, [example(np.zeros((8, 8)))], path.parent)
    assert [file.read_text(encoding="utf-8") for file in files] == before
    assert sorted(path.parent.iterdir()) == files


UNION = ("A", "B", "C", "D", "E")


def pick(pictures, count=6, probability=0.5):
    """Choose among pictures given by the letters of their classes; small ones are not known."""
    labels = np.array([[float(name in letters) for name in UNION] for letters in pictures])
    labels[[[name.lower() in letters for name in UNION] for letters in pictures]] = np.nan
    rows = np.arange(len(pictures))
    pixels = rows.astype(np.uint8)[:, None, None].repeat(2, 1).repeat(2, 2)
    table = pd.DataFrame(labels, columns=list(UNION))
    images = Images(table, pixels, rows, "nih", frozenset("AB"))
    chances = pd.DataFrame(probability, rows, list(UNION))
    return choose(Predictions(images, chances, labels), UNION, count)


@pytest.mark.parametrize(("pictures", "count", "chosen"), [
    (["A", "AB", "BC", "CDE"], 3, [3, 1, 0]),  # each adds most classes not shown yet
    (["ABCD", "AB"], 6, [1]),  # none of more than three
    (["", "A", "", "B"], 2, [1, 0]),  # the last is the first without any
    (["abcde", "ab", "A", "a"], 2, [2, 3]),  # nor of one whose labels nobody at the site knows
    (["A", "A", "A"], 6, [0, 1, 2]),  # none twice
    (["ABCDE"], 6, []),
])  # fmt: skip
def test_pictures_show_many_classes_whatever_is_predicted(pictures, count, chosen):
    for probability in (0.1, 0.9):
        found = pick(pictures, count, probability)
        assert [int(example.image[0, 0]) for example in found] == chosen


def test_an_example_has_all_that_a_report_shows():
    (example,) = pick(["BA"], probability=0.25)
    assert (example.site, example.truth, example.labelled) == ("nih", ["A", "B"], {"A", "B"})
    assert example.predictions == dict.fromkeys(UNION, 0.25)
    assert example.image.shape == (2, 2) and example.image.dtype == np.uint8
    # Present classes are shown, however improbable and unknown to the model.
    probable = {**dict.fromkeys("abcdefg", 0.5), "Fracture": 0.125, "e": 0.75}
    odd = Example("nih", example.image, ["Fracture", "Hernia"], probable, {"a"})
    assert odd.shown() == ["e", "a", "b", "c", "d", "Fracture", "Hernia"]


@pytest.mark.parametrize(("personal", "expected"), [
    ({"a": "own"}, [{"global": "own"}, {}]), ({}, [{"global": "best"}] * 2),
])  # fmt: skip
def test_no_site_is_reported_with_a_body_that_is_not_its_own(monkeypatch, personal, expected):
    monkeypatch.setattr(evaluate_run, "evaluate_site", lambda file, models, *_: models)
    monkeypatch.setattr(evaluate_run.tensorflow_setup, "configure", lambda *_: None)
    settings = SimpleNamespace(backbone="small_densenet", image_size=32, hidden=0, seed=0)
    run = FinishedRun(SimpleNamespace(at_server=settings, sites=("a", "b")), (), RunFacts(Path()))
    models = {name: Checkpoint({}, {"name": name}) for name in ("best", "own")}
    own = {site: models[name] for site, name in personal.items()}
    found = evaluate_run._evaluated(run, models["best"], own, Console(quiet=True))
    names = [{of: each.manifest["name"] for of, each in one.items()} for one in found]
    assert names == expected


JOB = SimpleNamespace(at_server=SimpleNamespace(mixed_precision=False))
RUN = FinishedRun(JOB, (), RunFacts())


def evaluation(site, *unvalidated, labels=None):
    facts = {"unvalidated": unvalidated, "labels": labels, "predictions": labels}
    return SiteEvaluation(site, None, (), (), **facts)


def warned(best=None, evaluations=(), data="real", **of_run):
    return list(warnings_of(replace(RUN, **of_run), best or Checkpoint({}), evaluations, data))


@pytest.mark.parametrize(("changes", "expected"), [
    ({"evaluations": [evaluation("nih")]}, None),
    ({"evaluations": [evaluation("nih", "Hernia"), evaluation("b")]},
     "nih: Hernia. The choice of the best round sees only"),
    ({"other_splits": ("nih",)}, "nih: the split is not the one of the training"),
    ({"facts": RunFacts(breaks=("the server crashed.",))}, "The server crashed."),
    ({"unfinished": ("as published", "nih alone")}, "ended: as published and nih alone."),
])  # fmt: skip
def test_each_warning_has_its_cause_and_a_fine_run_has_none(changes, expected):
    found = [warning.text for warning in warned(**changes)]
    assert len(found) == (expected is not None) and (expected or "") in "".join(found)


def test_so_have_look_alikes_shared_patients_and_a_precision_that_is_not_here(monkeypatch):
    shared = lambda sites: [f"{sites} share 3 ids"] * bool(sites)  # noqa: E731
    monkeypatch.setattr(run_warnings, "check_disjoint", shared)
    own = SimpleNamespace(site="a", dataset="table", patients="each-image")
    table = SimpleNamespace(site=own)
    shared, alone = warned(evaluations=[evaluation("a", labels=table), evaluation("b")])
    assert shared.heading == SHARED_PATIENTS and shared.text.endswith("share 3 ids.")
    assert alone.heading == NO_PATIENTS and alone.text.startswith("a: images of one patient may")
    table.site.patients = "exact"
    assert len(warned(evaluations=[evaluation("a", labels=table)])) == 1
    without = SimpleNamespace(site=SimpleNamespace(site="a", dataset="vindr", patients=None))
    assert warned(evaluations=[evaluation("a", labels=without)])[1] == alone
    _, bare = warned(evaluations=[replace(evaluation("a", labels=table), predictions=None)])
    assert bare.heading == "No personal model." and bare.text.startswith(
        "a: no best model of its own"
    )
    monkeypatch.setattr(JOB.at_server, "mixed_precision", True)
    for half, headings in ((True, []), (False, ["No mixed precision here."])):
        monkeypatch.setattr(run_warnings.tensorflow_setup, "half_precision", lambda h=half: h)
        assert [each.heading for each in warned()] == headings and warned(data="elsewhere") == []
    monkeypatch.setattr(run_warnings.job_results, "look_alikes", lambda: ["a and b: same words"])
    assert warned(data="elsewhere")[0].text.startswith("a and b: same words. Ask")


def test_a_class_that_no_site_could_teach_does():
    variables = wire.join({}, {"Mass": (np.float32([1]), np.float32([2]))})
    trained = {"sites": ["a"], "lacking": {"a": "negative"}}
    best = Checkpoint(variables, {"classes": {"Mass": trained, "not in the model": trained}})
    (never,) = warned(best)
    assert never.heading == "Never learned."
    assert never.text.startswith("Mass (no site had a negative image).")


@pytest.mark.parametrize("data", ["phantom", "real"])
def test_real_images_that_started_from_drawings_do(data):
    start = load(PRETRAINED_BODY).manifest["initial_body_sha256"]
    best = Checkpoint({}, {"initial_body_sha256": start})
    found = [each.heading for each in warned(best, data=data)]
    assert found == ([] if data == "phantom" else ["Started from drawings."])

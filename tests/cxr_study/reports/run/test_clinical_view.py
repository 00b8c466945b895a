import re
from dataclasses import replace

import pytest

import made_up_calibration
from cxr_study.evaluation.summary_json import Contribution, SubgroupAuroc
from cxr_study.models.calibration_file import SiteTest
from cxr_study.reports.run import clinical_view
from cxr_study.reports.run.clinical_view import GLOBAL, NO_FILES, NOT_ASSESSED, ModelFiles
from cxr_study.reports.run.evaluate_run import render
from html_page import Page

pytestmark = pytest.mark.usefixtures("no_figures")

EVIL = "<b onclick='x'>&\""


MEASURED = {"sensitivity": (0.5, 0.25, 0.875), "specificity": (0.75, 0.5, 1.0)}
AT_NIH = SiteTest(**MEASURED, ppv=(0.25, None, None), ece=0.02)


TESTED = {"test_sensitivity": (0.75, 0.5, 1.0), "test_specificity": (0.5, None, None)}


def calibrated(*sites, rule="sensitivity 0.9", test_ppv=(0.3, 0.2, 0.4), **changes):
    """The files of a global model with a threshold for Edema, chosen and tested at some sites."""
    how = {"rule": rule, "test_ppv": test_ppv, **TESTED, **changes}
    return ModelFiles({GLOBAL: made_up_calibration.calibrated(*sites, **how)}, chest=True)


def text_of(summary, files=NO_FILES, **changes):
    return Page(render(replace(summary, **changes), [], files)).text


def test_a_page_begins_with_its_use_and_in_plain_words_what_the_model_says(summary):
    text = text_of(summary, ModelFiles(chest=True))
    assert text.index("Research use, not for diagnosis.") < text.index("mean AUROC")
    for words in (
        "These numbers say nothing about any hospital, nor about NIH or CheXpert.",
        "The model knows 3 findings: Edema, Fracture and Hernia. For a chest X-ray, resized to "
        "64 \u00d7 64 pixels, it gives",
        "No finding is calibrated: outputs rank images and are not probabilities of disease.",
        "Nothing about any other finding",
        "Drawn pictures, not images of patients.",
        "nih (labels 2 findings, 700 images of 350 patients) and chexpert (labels 2",
        "whether children are among them is not recorded",
        "nih, on the classes that it labels itself: better by 0.125 (0.062 to 0.250)",
    ):
        assert text.count(words) == 1, words
    other = text_of(summary, data="real", personal=True)
    assert "Drawn" not in other and "chest X-ray" not in other and "CheXpert" not in other
    assert "Images of hospitals." in other and "Each hospital has a model of its own" in other


def test_what_a_site_keeps_or_did_not_contribute_is_not_invented(summary):
    kept = replace(summary.sites["nih"], images=None, patients=None)
    absent = {"nih": Contribution(((0, 1),)), "chexpert": Contribution(())}
    sites = {**summary.sites, "nih": kept}
    changed = replace(summary, sites=sites, contributions=absent, data="elsewhere")
    trained = clinical_view.statements(changed, NO_FILES)["What it was trained on."]
    assert "nih (labels 2 findings, number of images not known here)" in trained
    assert "chexpert (contributed to no round)" in trained


def test_a_class_has_what_was_measured_and_thresholds_only_where_they_were_tested(summary):
    files = calibrated("nih", by_site={"nih": SiteTest(**MEASURED, ppv=(0.3, 0.2, 0.4))})
    sensitivity, specificity = "0.50 (0.25\u20130.88)", "0.75 (0.50\u20131.00)"
    at_threshold = ("0.25", sensitivity, specificity, "0.30 (0.20\u20130.40)")
    edema, alone = "0.88 (0.75\u20130.94)", "0.75 (0.62\u20130.81)"
    fracture = ("Fracture (not labelled here)", "5 of 100 (5.0 %)", alone)  # as wide by chance
    assert clinical_view.rows(summary, files, "nih") == [
        ("Edema", "40 of 100 (40.0 %)", edema, alone, "0.050", *at_threshold, "not measured"),
        ("Hernia", "0 of 100 (0.0 %)", "not defined", "not defined", "0.070", NOT_ASSESSED),
        (*fracture, "\u2013", "0.350", NOT_ASSESSED),
    ]
    elsewhere = ("40 of 100 (40.0 %)", edema, "not measured", "not measured", NOT_ASSESSED)
    there = clinical_view.rows(summary, files, "chexpert")
    assert there == clinical_view.rows(summary, NO_FILES, "chexpert")
    assert there[0] == ("Edema", *elsewhere)


def test_a_hospital_has_what_was_measured_on_its_own_images_and_never_the_pooled_numbers(summary):
    both = calibrated("nih", "chexpert", by_site={"nih": AT_NIH})
    own = ("0.25", "0.50 (0.25\u20130.88)", "0.75 (0.50\u20131.00)", "0.25", "0.020")
    unknown = ("0.25", *["not measured"] * 4)
    assert clinical_view.rows(summary, both, "nih")[0][5:] == own
    assert clinical_view.rows(summary, both, "chexpert")[0][5:] == unknown


def test_a_threshold_that_misses_its_sensitivity_is_named_with_what_it_reaches(summary):
    missed = "The threshold of Edema was chosen for sensitivity 0.9 and reaches 0.50 (0.25 to 0.88)"
    text = text_of(summary, calibrated("nih", "chexpert", by_site={"nih": AT_NIH}))
    assert text.count(f"{missed} on test images.") == text.count("The threshold of") == 1
    for files in (calibrated("nih"), calibrated("nih", rule="f1", by_site={"nih": AT_NIH})):
        assert "The threshold of" not in text_of(summary, files)


def test_what_is_not_assessed_has_its_reason_once_and_outputs_far_from_reality_are_named(summary):
    few = {"Hernia": "20 positive images are needed; there are 3", "Fracture": "not labelled"}
    files = calibrated("nih", refused=few)
    assert clinical_view.below_table(summary, files, "nih")[1:] == [
        "Not assessed: Hernia (on validation images: 20 positive images are needed).",
        "Not assessed: Fracture (not labelled at nih).",
        "Mean raw output more than 0.2 away from the share of test images with the finding: "
        "Fracture (0.60, share 0.25).",
    ]
    words = "Calibrated: 1 of 3 findings with images of nih. Other outputs, and all at other"
    assert words in text_of(summary, files)
    html = render(summary, [], files)
    assert html.count('colspan="5" class="number quiet"') == 5  # one cell in each such row


def test_a_threshold_of_other_sites_images_is_not_that_of_a_class_not_labelled_here(summary):
    both = calibrated("nih", "chexpert")
    of_nih = [replace(row, labelled=False) for row in summary.test[:1]]
    changed = replace(summary, test=(*of_nih, *summary.test[6:7]))
    assert clinical_view.rows(changed, both, "nih")[0][5:] == (NOT_ASSESSED,)
    assert clinical_view.rows(changed, both, "chexpert")[0][5] == "0.25"


def test_a_class_without_any_label_is_named_and_a_withheld_count_is_no_zero(summary):
    row = summary.test[0]
    unlabelled = replace(row, class_name="Hernia", auroc=None, positives=0, negatives=0)
    withheld = replace(row, positives=None, negatives=None)
    changed = replace(summary, test=(withheld, unlabelled))
    (cells,) = clinical_view.rows(changed, NO_FILES, "nih")
    assert cells[:2] == ("Edema", "withheld")
    words = "Not assessed at nih, whose test images have no label of them: Hernia."
    assert words in text_of(changed) and words not in text_of(summary)


@pytest.mark.parametrize(("changes", "files", "options"), [
    ({}, ModelFiles(chest=True), "--phantom --sites nih,chexpert"),
    ({"data": "real"}, ModelFiles(chest=True), "--site-files <folder of site files> --sites nih,"),
    ({"data": "elsewhere"}, NO_FILES, "--own-site <module:Class> --sites nih,chexpert"),
    ({"personal": True}, ModelFiles(chest=True), "--phantom --site nih --sensitivity 0.9"),
    ({}, calibrated("nih"), "--phantom --sites nih,chexpert --sensitivity 0.9 --force"),
])  # fmt: skip
def test_where_a_site_lacks_thresholds_the_commands_are_given(summary, changes, files, options):
    calibrate, report = clinical_view.commands(replace(summary, **changes), files)
    assert calibrate.startswith(f"surgagg model calibrate <folder of the run> {options}")
    assert ("--force" in calibrate) == bool(files.calibrations)
    assert report == "surgagg report <folder of the run>"
    assert clinical_view.commands(summary, calibrated("nih", "chexpert")) == []


def test_a_page_explains_its_thresholds_and_what_is_not_assessed(summary):
    here = "Thresholds were chosen to reach sensitivity 0.9 on the validation images of nih"
    none, to_do = "No threshold was calibrated at", "To calibrate thresholds"
    for sites, expected in (((), [2, 0, 1]), (("nih", "chexpert"), [0, 2, 0]), (("nih",), [1] * 3)):
        text = text_of(summary, calibrated(*sites) if sites else NO_FILES)
        assert [text.count(words) for words in (none, here, to_do)] == expected
    assert f"{none} chexpert: sensitivity, specificity and PPV are not" in text
    assert "no width (at 0.00 and 1.00), Clopper-Pearson on the number of patients." in text
    # The command is for who runs it: after what clinicians read, with what it replaces.
    assert text.index("The run Method") < text.index(to_do)
    assert "--force , then surgagg report" in text
    assert "It replaces the calibration with images of nih." in text
    assert "for the highest F1 on the" in text_of(summary, calibrated("nih", rule="f1"))


def test_a_personal_model_has_its_own_thresholds_or_none(summary):
    (made,) = calibrated("nih").calibrations.values()
    assert ModelFiles({GLOBAL: made}).calibration("nih") is made
    assert ModelFiles({GLOBAL: made}).calibration("chexpert") is None  # made without its images
    assert ModelFiles({GLOBAL: made, "nih": None}).calibration("nih") is None
    assert ModelFiles({GLOBAL: None, "nih": made}).calibration("nih") is made


def subgroup(kind, name, auroc, site="nih"):
    return SubgroupAuroc(site, kind, name, 50, 40, 3, auroc, 0 if auroc is None else 2, auroc)


def test_subgroups_are_compared_with_a_warning_of_the_lowest_or_it_is_stated_why_not(summary):
    found = (
        subgroup("sex", "F", 0.75), subgroup("sex", "M", 0.875), subgroup("age", "0-39", None),
        subgroup("age", "80+", None), subgroup("view", "AP", 0.75),
    )  # fmt: skip
    changed = replace(summary, subgroups=found)
    for views, image in (((), "a frontal chest"), (("lateral",), "a chest")):
        seen = (*found, *(subgroup("view", view, None) for view in views))
        seen = replace(summary, subgroups=seen)
        (text, *_) = clinical_view.statements(seen, ModelFiles(chest=True)).values()
        assert f"For {image} X-ray, resized" in text
    assert clinical_view.subgroups(changed, "nih") == [
        "By sex: F 50 images, AUROC 0.750; M 50 images, AUROC 0.875. Lowest for F, by 0.125, over "
        "2 classes; without an interval, so it may be chance.",
        "By age: 0-39 50 images; 80+ 50 images. Not compared: no class has enough images in every "
        "subgroup.",
        "By view: AP 50 images, AUROC 0.750.",
    ]
    unmeasured = "Performance by sex, age and view was not measured."
    assert clinical_view.subgroups(changed, "chexpert") == [unmeasured]
    assert text_of(changed).count(unmeasured) == 1


def test_names_are_text_and_the_page_links_and_holds_each_card(summary):
    cards = {GLOBAL: ("../models/model_card.md", "# The card"), EVIL: ("%3Cb%3E", f"# {EVIL}'s")}
    files = ModelFiles(cards=cards)
    renamed = replace(summary, sites={EVIL: summary.sites["nih"]}, union=(EVIL,))
    page = Page(render(renamed, [], files))
    assert "b" not in page.tags and page.text.count(EVIL) > 3 and page.needs_nothing_else()
    assert ("href", "../models/model_card.md") in page.attributes
    assert f"model card of {EVIL}" in page.text
    assert all(text in page.text for _, text in cards.values())
    assert page.text.index("model card") < page.text.index("mean AUROC")
    assert "model card" not in text_of(summary).replace("model_card", "")


def test_many_sites_are_folded(summary):
    site = summary.sites["nih"]
    for number, tag in ((4, "h3"), (5, "summary")):
        sites = {f"site {n}": site for n in range(number)}
        html = render(replace(summary, sites=sites, test=()), [])
        assert len(re.findall(rf"<{tag}>At site \d</{tag}>", html)) == number

import re
from dataclasses import replace

import numpy as np
import pytest
from markdown_it import MarkdownIt

from cxr_study.common.wording import Notice
from cxr_study.evaluation.summary_json import PATIENTS, Contribution
from cxr_study.jobs.method import Method
from cxr_study.reports.card import model_card
from cxr_study.reports.card.model_card import CardSource, averaged_body, markdown, trained_by, write
from html_page import Page
from made_up_calibration import calibrated
from made_up_summary import DEGENERATE
from surgical_aggregation.aggregation import batch_norm_strategy as strategies
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.checkpoints.model_facts import ClassTraining, facts_of
from surgical_aggregation.wire import variables as wire

EVIL = "a|b *c* <script>x</script>\n# d"


def facts(**more):
    columns = dict.fromkeys(("Edema", "Fracture", "Hernia"), ([1.0], [1.0]))
    both = ["chexpert", "nih"]
    trained = {
        "Edema": {"sites": both, "last_round": 1, "rounds": [[0, 1, both]]},
        "Hernia": {"sites": ["x"], "last_round": 3, "imported": {"model_sha256": "f" * 64}},
    }
    network = {"backbone": "small_densenet", "image_size": 64, "hidden": 0}
    manifest = {"classes": trained, "created": "2026-01-01", "version": "1", **network, **more}
    return facts_of(Checkpoint(wire.join({}, columns), manifest))


CALIBRATION = calibrated(
    "nih", threshold_ends=(0.2, 0.3), test_sensitivity=(0.75, None, None),
    test_specificity=(0.5, 0.4, 0.6), test_ppv=(0.3, 0.2, 0.4),
)  # fmt: skip


@pytest.fixture
def source(summary):
    how = {"filters": ["SVTPrivacy (a_b)"], "chest": True}
    how["body"] = averaged_body(Checkpoint({}, {"strategy": "fedavg"}))
    return CardSource("Two hospitals", facts(), summary, {"strategy": "fedbn+"}, CALIBRATION, **how)


def tables(text):
    """Every table's rows, as numbers of cells."""
    for block in re.split(r"\n(?!\|)", text):
        rows = [line for line in block.split("\n") if line.startswith("|")]
        if rows:
            yield [len(re.split(r"(?<!\\)\|", row)) for row in rows]


def shown(text):
    """The card as a reader of Markdown shows it, which takes HTML as it is."""
    return Page(MarkdownIt("commonmark").enable("table").render(text.split("---\n", 2)[2]))


def test_the_hubs_own_library_reads_it(source):
    from huggingface_hub import ModelCard

    card = ModelCard(markdown(source))
    assert card.data.library_name == "keras" and "chest-x-ray" in card.data.tags
    found = {(r.dataset_type, r.metric_type): r.metric_value for r in card.data.eval_results}
    assert found == {("phantom", "roc_auc"): 0.84}
    real = replace(source, summary=replace(source.summary, data="real"))
    named = ModelCard(markdown(real)).data.eval_results
    assert {row.dataset_type for row in named} == {"nih", "chexpert"}
    assert card.text.lstrip().startswith("# Two hospitals")


def test_a_method_of_a_package_is_not_the_papers(source, monkeypatch):
    assert "the body is averaged over all sites. A class's" in markdown(source)
    own = Method("tails", "Local tails", "The last block stays.", strategy="tail")
    monkeypatch.setattr(model_card, "METHODS", {"tails": own})
    text = markdown(replace(source, summary=replace(source.summary, job="tails")))
    assert "Local tails: The last block stays.\n" in text and "ML4H" not in text


class Tail(strategies.Strategy):
    def personal(self, body, kinds):
        return frozenset(path for path in body if path.startswith("tail"))

    def frozen(self, body, kinds):
        return kinds.statistics


def test_what_is_averaged_of_the_body_follows_the_strategy(source, monkeypatch):
    monkeypatch.setitem(strategies._OWN, "tail", Tail())
    paths = ("conv", "tail/kernel", "tail/bias", "bn/moving_mean", "bn/moving_variance")
    body = dict.fromkeys(paths, np.ones(1))
    text = averaged_body(Checkpoint(body, {"strategy": "tail"}))
    assert text == (
        "the body is averaged over all sites, except 4 of its 5 variables, which no site sends"
    )
    assert f": {text}. A class's" in markdown(replace(source, body=text))
    assert averaged_body(Checkpoint(body, {"strategy": "of a package that is gone"})) == ""


def test_it_says_what_the_run_knows_and_marks_what_a_person_must_add(source):
    text = markdown(source)
    for words in (
        "**Research use only.**", "**Phantom data.**", "| Edema | 70 / 630 | 70 / 630 |",
        "| nih | 2 | 700 | 100 | 200 | 350 | 50 | 99 |",
        "| Edema | 2 sites (chexpert and nih), rounds 0 and 1 |",
        "| Hernia | 1 site (x); imported from model ffffffffffffffff… |",
        "| Fracture | not known |", "| Edema | nih | yes | 0.875 (0.750\u20130.938) | 40 | 60 |",
        "| Edema | 1,200 | 30 | 0.100 | 0.050 | 0.250 (0.200 to 0.300) | 0.900 | 0.750 | 0.500 | "
        "0.500 (0.400 to 0.600) | 0.300 (0.200 to 0.400) |",
        "- nih, 2 of the classes that it labels: 0.060",
        "- nih, 1 of the classes that it does not label: 0.350",
        "| Fracture | nih | no | 200 | 0.350 | 0.600 | 0.250 |", "| strategy | fedbn+ |",
        "the model of round 1 was chosen by validation loss: a mean over sites (0.250), in which",
        "together by surgical aggregation with NVIDIA FLARE",
        "A class's column is averaged over the sites that label it",
        "names in what sites sent: SVTPrivacy (a\\_b). Filters", "**TO FILL IN: name and contact",
        "does not state: how pixels are resized and normalised; how batch normalisation was",
    ):  # fmt: skip
        assert words in text, words


def test_pooled_test_images_are_named_as_such(source):
    words = "Test images of these sites are pooled here"
    assert words not in markdown(source)
    both = CALIBRATION.model_copy(update={"sites": ("nih", "chexpert")})
    assert words in markdown(replace(source, calibration=both))


@pytest.mark.parametrize(("model", "contributed", "absent"), [
    ({"contributed": {"nih": [[0, 3], [5, 5]]}}, "nih (rounds 0 to 3 and 5)", ["chexpert", "x"]),
    ({"contributed": {"x": [[0, 0]]}}, "x (round 0)", ["nih", "chexpert"]),  # body alone
    ({"contributed": {}}, "none", ["nih", "chexpert", "x"]),  # the initial model is the best
    ({"site": "nih"}, "nih (round 0)", ["chexpert", "x"]),  # a site's own, of round 1
])  # fmt: skip
def test_sites_count_as_contributors_by_the_models_manifest(source, model, contributed, absent):
    known = {"nih": ((0, 5),), "chexpert": (), "x": ()}
    known = {site: Contribution(rounds, "no <sign>") for site, rounds in known.items()}
    run = replace(source.summary, contributions=known)
    text = markdown(replace(source, facts=facts(**model), summary=run))
    assert f"**Sites that contributed:** {contributed}." in text
    words = r"\*\*Absent:\*\* (\w+) contributed to no round(.*) \(no &lt;sign&gt;\)"
    later = {"nih": " before this model"}
    assert re.findall(words, text) == [(site, later.get(site, "")) for site in absent]


@pytest.mark.parametrize("heading", PATIENTS)
def test_patients_at_two_sites_or_unknown_are_not_claimed_to_be_at_one(source, heading):
    claim = "Patients are in one split and at one site alone."
    assert claim in markdown(source)
    shared = replace(source.summary, warnings=(Notice(heading, "3 ids."),))
    assert claim not in markdown(replace(source, summary=shared))


def test_a_personal_models_card_has_its_own_sites_results_alone(source, summary):
    own = markdown(replace(source, summary=summary.of_site("nih"), file="site_best.npz"))
    whole = markdown(source)
    assert "test split of chexpert" in whole and "test split of chexpert" not in own
    assert "test split of nih" in own and 'load_model("site_best.npz")' in own


def test_a_refitted_column_names_its_images():
    refit = {"site": "me", "images": 80}
    of = ClassTraining(("me",), None, imported={"model_sha256": "5" * 64, "refit": refit})
    text = trained_by(of)
    assert text.startswith("1 site (me); fitted on 80 images of me; imported from model 555")


def test_a_site_of_somebodys_own_has_no_chest_x_rays(source):
    assert "chest" in markdown(source)
    own = markdown(replace(source, chest=False)).lower()
    assert not re.search("chest|x-ray|lateral|finding on", own)
    assert "predicts 3 classes." in own and "grey" not in own and "per class" in own


def test_answers_in_the_models_folder_are_in_every_card(source, tmp_path):
    path = write(source, tmp_path)
    assert path == tmp_path / "model_card.md" and path.read_text() == markdown(source)
    blank = (tmp_path / "card.yaml").read_text()
    placeholder, text = model_card.placeholder, path.read_text()
    unasked = [key for key in model_card.QUESTIONS if placeholder(key) not in text]
    assert unasked == ["data", "performance"]  # the run knows these
    (tmp_path / "card.yaml").write_text(blank.replace("developer: ''", "developer: A|b <c@d.org>"))
    for _ in range(2):
        text = write(source, tmp_path).read_text()
        assert "| Developer | A\\|b &lt;c@d.org&gt; |" in text and placeholder("licence") in text


@pytest.mark.parametrize(("answers", "why"), [
    ("develper: x", "card.yaml: no card asks for 'develper'; nearest known: developer"),
    ("release: 2026-01-01", "card.yaml: 'release' needs a text in quotes; got datetime"),
    ("- x", "needs lines 'key: value'"),
])  # fmt: skip
def test_answers_that_cannot_be_used_are_refused(source, tmp_path, answers, why):
    (tmp_path / "card.yaml").write_text(answers)
    with pytest.raises(ValueError, match=re.escape(why)):
        write(source, tmp_path)


def test_another_method_is_not_called_surgical_aggregation(source, summary):
    other = replace(source, summary=replace(summary, job="vanilla"))
    text = markdown(other).partition("# Two hospitals")[2]
    assert "by vanilla federated learning" in text and "urgical aggregation" not in text
    assert "urgical aggregation" not in markdown(CardSource("m", facts())).partition("# m")[2]


def variants(summary):

    yield CardSource("m", facts())
    yield CardSource("m", facts(validation={"round": 1, "auroc": {"nih": {"Edema": 0.5}}}))
    yield CardSource("m", replace(facts(), site="nih"), summary, {}, CALIBRATION)
    kept = {name: replace(of, images=None, patients=None) for name, of in summary.sites.items()}
    yield CardSource("m", facts(), replace(summary, data="elsewhere", sites=kept))
    for changes in DEGENERATE.values():
        yield CardSource("m", facts(), replace(summary, **changes))


def test_it_lists_the_versions_of_the_sites():
    versions = {"nih": {"keras": "3.1", "nvflare": "2.9.0"}, "x": {"keras": "|"}}
    words = "| Sites' software | nih: keras 3.1, nvflare 2.9.0; x: keras \\| |"
    assert words in markdown(CardSource("m", facts(versions=versions)))
    assert "Sites' software" not in markdown(CardSource("m", facts()))


def test_every_table_is_whole_whatever_is_known(source, summary):
    for text in map(markdown, (source, *variants(summary))):
        found = list(tables(text))
        assert len(found) >= 3 and "\n\n\n\n" not in text
        assert all(len(set(rows)) == 1 and rows[0] > 2 for rows in found), (found, text)


def test_names_are_text(source, summary):
    odd = replace(summary, sites={EVIL: summary.sites["nih"]}, test=(), means=(), rounds=())
    text = markdown(replace(source, name=EVIL, summary=odd))
    assert "<script>" not in text and r"a\|b \*c\*" in text
    page = shown(text)
    assert "script" not in page.tags and EVIL.split("\n")[0] in page.text
    assert model_card.escape_markdown("Nodule/Mass") == "Nodule/Mass"


EVILS = ("<script>x</script>", "[a](javascript:x)", "`<b onclick=x>`")


@pytest.mark.parametrize("where", ["created", "version", "strategy", "backbone", "site"])
def test_whatever_a_foreign_manifest_says_is_text(where, source):
    for evil in EVILS:
        page = shown(markdown(replace(source, facts=facts(**{where: evil}))))
        assert not {"script", "a", "b"} & set(page.tags)
        assert evil in page.text

"""`surgagg baseline`, as a person calls it, on a phantom of a few small images."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from body_statistics import with_statistics
from cxr_phantom.writers.write_phantom import write_phantom
from cxr_studies.commands import baseline
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.training.network import build
from surgical_aggregation.checkpoints.checkpoint import load, save
from surgical_aggregation.site.contract.architecture import initial_body
from surgical_aggregation.wire import variables as wire
from typed import Typist, answer

SMALL = [
    "--initial-body", "body.npz", "--set", "image_size=16", "--set", "warmup_epochs=1",
    "--set", "backbone=tiny_densenet",
]  # fmt: skip


@pytest.fixture(scope="module")
def surgagg(tmp_path_factory):
    """The console script, in a folder with a phantom and an initial body."""
    home = tmp_path_factory.mktemp("surgagg")
    write_phantom(home / "phantom", images_per_site=60, size=16)
    body = with_statistics(initial_body(build("tiny_densenet", 1, image_size=16)))
    save(body, home / "body.npz")
    return Typist(home)


@pytest.fixture(scope="module")
def trained(surgagg):
    """Each site alone, one of them at a rate of its own, and both together, side by side."""
    alone = ["individual", "--rounds", 1, "--set", "nih:learning_rate=0", "--out", "alone", *SMALL]
    together = ["centralised-partial", "--rounds", 2, "--patience", 1, "--out", "both", *SMALL]
    with ThreadPoolExecutor() as pool:
        calls = [
            pool.submit(surgagg, "baseline", *arguments, "--site-files", "phantom/sites")
            for arguments in (alone, together)
        ]
    return [call.result() for call in calls]


def test_models_have_the_classes_and_settings_of_their_sites(trained, surgagg):
    alone, both = trained
    assert (alone.code, both.code) == (0, 0), alone.err + both.err
    start, _ = wire.split(load(surgagg.home / "body.npz").variables)
    for site, classes in (("nih", NIH_CLASSES), ("chexpert", CHEXPERT_CLASSES)):
        model = load(surgagg.home / "alone" / site / "best.npz")
        assert wire.classes_of(model.variables) == tuple(sorted(classes))
        assert (model.manifest["method"], model.manifest["strategy"]) == ("individual", "fedbn+")
        last = load(surgagg.home / "alone" / site / "last.npz").variables
        same = all((last[path] == value).all() for path, value in start.items())
        assert same == (site == "nih")  # which learns at a rate of 0
    model = load(surgagg.home / "both" / "last.npz")
    assert wire.classes_of(model.variables) == tuple(sorted(UNION_CLASSES))
    assert (model.manifest["method"], model.manifest["round"]) == ("centralised-partial", 2)
    # They end with a table of the results, and the paths.
    assert "of 14 " in alone.out and "of 13 " in alone.out and "does not" not in alone.out
    assert "of 20 " in both.out and "does not" in both.out
    assert "models   alone/nih" in alone.out and "models   both" in both.out
    card = (surgagg.home / "alone/nih/model_card.md").read_text()
    assert "One hospital, nih, trained it alone." in card and "Hospitals that label" not in card
    assert "in one place." in (surgagg.home / "both/model_card.md").read_text()


@pytest.fixture
def here(surgagg, monkeypatch):
    """The runs that would be trained, of commands that are typed in the folder."""
    monkeypatch.chdir(surgagg.home)
    monkeypatch.setenv("SURGAGG_CACHE", str(surgagg.home / "cache"))
    monkeypatch.setattr(baseline, "_print", lambda *_: None)
    runs = []
    monkeypatch.setattr(baseline.baseline_run, "train", lambda run, _: runs.append(run))
    return runs


@pytest.mark.parametrize(("words", "message"), [
    ("individual", "needs --site-files <folder of <site>.yaml> for real data, or --phantom"),
    ("individual --phantom --site-files phantom/sites", "for drawn images; got both"),
    ("individual --phantom --out phantom --force --initial-body phantom/a.npz",
     "--force would remove phantom/a.npz, which the new run needs"),
    *[(f"{words} --site-files phantom/sites", message) for words, message in {
        "centralized": "no method 'centralized'; nearest known: centralised",
        "centralised --set nih:seed=1": "a setting is given for 'nih' alone",
        "individual --set mayo:seed=1": "a setting is given for 'mayo' alone",
        "individual --sites nih,nih": "sites need different names",
        "individual --strategy fedbn": "strategy must be fedavg, fedbn+ or fixbn; fedbn differs",
        "individual --sites nih,mayo": "mayo.yaml",
        "individual --out phantom": "a run needs a new folder; phantom exists",
        "individual --out phantom/sites --force": "only what an earlier run",
        "individual --out phantom --force": "--force would remove phantom/sites, which the new",
    }.items()],
])  # fmt: skip
def test_a_mistake_is_refused_before_anything_is_trained(here, surgagg, words, message):
    (surgagg.home / "phantom/nih/rounds.jsonl").touch()  # as if an earlier run were there
    out = ["--out", "refused"] * ("--out" not in words)
    assert message in answer("baseline", *words.split(), *out, code=2)
    assert (surgagg.home / "phantom" / "sites").is_dir() and here == []


def test_force_removes_an_earlier_training(here, surgagg):
    (surgagg.home / "old" / "nih").mkdir(parents=True)
    (surgagg.home / "old" / "nih" / "rounds.jsonl").touch()
    answer(
        "baseline", "individual", "--out", "old", "--sites", "nih", "--preset", "paper",
        "--site-files", "phantom/sites", "--set", "image_size=16", "--rounds", 3, "--force",
        "--initial-body", "drawings",
    )  # fmt: skip
    assert not (surgagg.home / "old").exists()
    (run,) = here
    assert (run.settings["num_rounds"], run.settings["patience"]) == (3, 0)
    assert (run.settings["image_size"], run.settings["augmentation"]) == (16, "paper")

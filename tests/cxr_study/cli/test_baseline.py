"""`surgagg baseline`, as a person calls it, on a phantom of a few small images."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from body_statistics import with_statistics
from cxr_study.cli import baseline
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.phantom.writers.write_phantom import write_phantom
from cxr_study.training.network import build
from surgical_aggregation.checkpoints.checkpoint import load, save
from surgical_aggregation.site.contract.architecture import initial_body
from surgical_aggregation.wire import variables as wire
from typed import Typist

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


def test_each_site_alone_has_a_model_of_its_own_classes_and_settings(trained, surgagg):
    assert trained[0].code == 0, trained[0].err
    start, _ = wire.split(load(surgagg.home / "body.npz").variables)
    for site, classes in (("nih", NIH_CLASSES), ("chexpert", CHEXPERT_CLASSES)):
        model = load(surgagg.home / "alone" / site / "best.npz")
        assert wire.classes_of(model.variables) == tuple(sorted(classes))
        assert (model.manifest["method"], model.manifest["strategy"]) == ("individual", "fedbn+")
        last = load(surgagg.home / "alone" / site / "last.npz").variables
        same = all((last[path] == value).all() for path, value in start.items())
        assert same == (site == "nih")  # which learns at a rate of 0


def test_both_together_have_one_model_of_all_classes(trained, surgagg):
    assert trained[1].code == 0, trained[1].err
    model = load(surgagg.home / "both" / "last.npz")
    assert wire.classes_of(model.variables) == tuple(sorted(UNION_CLASSES))
    assert model.manifest["method"] == "centralised-partial"
    assert model.manifest["round"] == 2


def test_it_ends_with_a_table_of_what_can_be_said_and_the_paths(trained):
    alone, both = (call.out for call in trained)
    assert "of 14 " in alone and "of 13 " in alone and "does not" not in alone
    assert "of 20 " in both and "does not" in both
    assert "models   alone/nih" in alone and "models   both" in both


class TestMistakes:
    """Each is refused before anything is trained."""

    @pytest.fixture
    def call(self, surgagg, monkeypatch):
        monkeypatch.chdir(surgagg.home)
        monkeypatch.setenv("SURGAGG_CACHE", str(surgagg.home / "cache"))
        monkeypatch.setattr(baseline.baseline_run, "train", lambda *_: pytest.fail("it trained"))
        return lambda *arguments, **options: baseline.baseline(
            *arguments, **{"site_files": Path("phantom/sites"), "out": Path("refused"), **options}
        )

    @pytest.mark.parametrize(
        ("method", "options", "message"),
        [
            ("individual", {"site_files": None}, "needs --site-files .* or --phantom .* neither"),
            ("individual", {"phantom": True}, "needs --site-files .* or --phantom .* got both"),
            ("centralized", {}, "no method 'centralized'"),
            ("centralised", {"settings": ["nih:seed=1"]}, "a setting is given for 'nih' alone"),
            ("individual", {"settings": ["mayo:seed=1"]}, "a setting is given for 'mayo' alone"),
            ("individual", {"sites": "nih,nih"}, "sites need names"),
            (
                "individual",
                {"strategy": "fedbn"},
                "without a federation the strategy must be fedavg",
            ),
            ("individual", {"sites": "nih,mayo"}, "mayo.yaml"),
            ("individual", {"out": Path("phantom")}, "a run needs a new folder; phantom exists"),
            ("individual", {"out": Path("phantom"), "force": True}, "only what an earlier run"),
        ],
    )
    def test_is_told(self, call, surgagg, method, options, message):
        with pytest.raises(ValueError, match=message):
            call(method, **options)
        assert (surgagg.home / "phantom" / "sites").is_dir()


def test_force_removes_an_earlier_training(surgagg, monkeypatch):
    monkeypatch.chdir(surgagg.home)
    monkeypatch.setenv("SURGAGG_CACHE", str(surgagg.home / "cache"))
    (surgagg.home / "old" / "nih").mkdir(parents=True)
    (surgagg.home / "old" / "nih" / "rounds.jsonl").touch()
    trained = []
    monkeypatch.setattr(baseline.baseline_run, "train", lambda run, _: trained.append(run))
    monkeypatch.setattr(baseline, "_print", lambda *_: None)
    baseline.baseline(
        "individual",
        out=Path("old"),
        sites="nih",
        site_files=Path("phantom/sites"),
        preset="paper",
        settings=["image_size=16"],
        rounds=3,
        force=True,
    )
    assert not (surgagg.home / "old").exists()
    (run,) = trained
    assert (run.settings["num_rounds"], run.settings["patience"]) == (3, 25)
    assert (run.settings["image_size"], run.settings["augmentation"]) == (16, "paper")

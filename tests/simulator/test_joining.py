"""The story of docs/how-to/join.md, as it is typed, on fewer images."""

import re
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from cxr_study.runs.finished_run import checkpoint_folder, server_folder
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.wire import variables as wire
from typed import Typist

STORY = Path(__file__).parents[2] / "docs/how-to/join.md"
SMALLER = {
    "surgagg data phantom data": " --images 160 --size 32",
    "surgagg run surgical": " --set num_rounds=2 --set warmup_epochs=1 --set image_size=32",
    "surgagg model calibrate": " || test $? = 2",  # of so few images no class can be
}
"""Beginning of a command -> what is added to its end."""

SHARED = ("Edema", "Pleural Effusion")
OF_A, OF_D = ("Atelectasis", "Emphysema"), ("Fibrosis", "Mass")


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """What the commands left, and what they said."""
    home = tmp_path_factory.mktemp("joining")
    blocks = re.findall(r"```bash\n(.*?)```", STORY.read_text(encoding="utf-8"), re.DOTALL)
    lines = "".join(blocks).splitlines()
    script = "\n".join(
        line + next((more for start, more in SMALLER.items() if line.startswith(start)), "")
        for line in lines
    )
    assert all(any(line.startswith(start) for line in lines) for start in SMALLER)
    output = Typist(home).output_of("bash", "-euo", "pipefail", "-c", script)
    folders = {run: checkpoint_folder(home / f"runs/{run}/workspace") for run in ("ab", "abd")}
    models = {run: load(folder / "last.npz") for run, folder in folders.items()}
    return SimpleNamespace(home=home, output=output, **models)


def columns(checkpoint):
    return wire.split(checkpoint.variables)[1]


def equal(one, other):
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


def test_c_has_the_columns_of_a_and_b_bit_for_bit_and_trained_nothing(story):
    best = load(server_folder(story.home / "runs/ab/workspace") / "models/best.npz")
    taken = load(story.home / "c3.npz")
    assert set(columns(taken)) == {"Edema", "Emphysema", "Pleural Effusion"}
    for name, column in columns(taken).items():
        assert equal(column, columns(best)[name])
    facts = taken.manifest["classes"]
    assert "imported" not in facts["Edema"]
    assert facts["Emphysema"]["sites"] == ["nih-1"]
    assert facts["Emphysema"]["imported"]["round"] == best.manifest["round"]
    assert set(facts["Emphysema"]["imported"]["auroc"]) <= {"nih-1"}
    assert re.search(r"mean +│? *mimic", story.output)
    table = pd.read_csv(story.home / "c.csv", keep_default_na=False)
    assert {"Edema", "Emphysema", "Pleural Effusion", "flags"} < set(table) and len(table) > 160


def test_the_final_head_has_the_classes_of_all(story):
    everything = {*columns(story.ab), *OF_D}
    assert set(columns(story.abd)) == everything and len(everything) == 16
    facts = story.abd.manifest["classes"]
    assert all(facts[name]["sites"] == ["nih-2"] for name in OF_D)
    assert facts["Edema"]["sites"] == ["chexpert", "nih-1", "nih-2"]


def test_columns_that_nobody_trained_again_are_bit_equal(story):
    before, after = columns(story.ab), columns(story.abd)
    rested = [
        name for name, facts in story.abd.manifest["classes"].items()
        if facts["last_round"] < story.ab.manifest["round"]
    ]  # fmt: skip
    only_b = {*before} - {*SHARED, *OF_A}
    assert set(rested) == only_b and len(only_b) == 10
    assert all(equal(after[name], before[name]) for name in rested)
    assert not any(equal(after[name], before[name]) for name in (*SHARED, *OF_A))
    body = [name for name in story.ab.variables if wire.class_of(name) is None]
    moved = [n for n in body if story.ab.variables[n].tobytes() != story.abd.variables[n].tobytes()]
    assert moved  # the body goes on, so what they predict may change

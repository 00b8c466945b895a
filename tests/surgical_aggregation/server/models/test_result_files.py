"""Results on the server's disk until the end of their round."""

import errno
import os

import numpy as np
import pytest
from nvflare.apis.dxo import from_shareable

from flare import Engine, context, global_model, result
from surgical_aggregation.aggregation.result_checks import Contribution
from surgical_aggregation.server.models import result_files
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.result_files import on_disk

RNG = np.random.default_rng(0)
BODY = {
    "conv/kernel": RNG.random((3, 5)).astype(np.float32),
    "half": RNG.random(7).astype(np.float16),
    "transposed": RNG.random((4, 3)).T,
    "scalar": np.array(2.5),
    "none": np.zeros((0, 3), np.float32),
}
COLUMNS = {"Nodule/Mass": (RNG.random(5).astype(np.float32), np.float32([0.5]))}


def resident():
    """Memory of this process that is no file's, MB."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024


def test_a_result_is_the_same_bits_and_its_file_has_no_name(tmp_path):
    sent = Contribution(BODY, COLUMNS, 10, {"Nodule/Mass": 3})
    kept = on_disk(sent, tmp_path / "job")
    assert list((tmp_path / "job").iterdir()) == []
    assert (kept.samples, kept.positives) == (10, {"Nodule/Mass": 3})
    pairs = [(kept.body[name], value) for name, value in BODY.items()]
    pairs += zip(kept.columns["Nodule/Mass"], COLUMNS["Nodule/Mass"], strict=True)
    assert len(kept.body) == len(BODY) and len(kept.columns) == 1
    for value, before in pairs:
        assert (value.dtype, value.shape) == (before.dtype, before.shape)
        assert value.tobytes() == before.tobytes()
        assert not np.shares_memory(value, before) and not value.flags.writeable


def test_memory_does_not_grow_with_the_sites(tmp_path):
    size = 2**20  # 4 MB
    body = {f"layer{n}": np.zeros(size // 8, np.float32) for n in range(8)}
    model = global_model(body, {"Edema": (np.zeros(2, np.float32), np.zeros(1, np.float32))})
    engine, aggregator = Engine(tmp_path), SurgicalAggregator("fedavg")
    at_first = None
    for number in range(40):
        trained = {name: value + np.float32(number) for name, value in body.items()}
        sent = result(trained, model.columns)
        assert aggregator.accept(sent, context(f"site{number:02}", model=model, engine=engine))
        del sent, trained
        at_first = at_first or resident()
    averaged = from_shareable(aggregator.aggregate(context(model=model, engine=engine))).data
    assert resident() - at_first < 24  # forty results are 160 MB, the average 4
    assert {value.flat[0] for name, value in averaged.items() if name in body} == {19.5}


def test_where_the_disk_takes_no_more_the_run_ends_with_the_reason(tmp_path, monkeypatch, panics):
    def full(variables, folder):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(result_files, "_mapped", full)
    body = {"conv/kernel": BODY["conv/kernel"]}
    model = global_model(body, COLUMNS, 5)
    fl_ctx = context("a", model=model, engine=Engine(tmp_path))
    assert not SurgicalAggregator("fedavg").accept(result(body, COLUMNS), fl_ctx)
    assert f"{str(tmp_path / 'server' / 'job')!r}" in panics[0]
    assert "No space left on device. The results of all sites must have room" in panics[0]


@pytest.mark.parametrize("weighting", ["mean", "classes", "conflict_averse"])
def test_the_average_is_that_of_results_in_memory_to_the_last_bit(tmp_path, weighting, monkeypatch):
    body = {"a": np.float32(RNG.random((6, 7))), "b": np.float32(RNG.random(5))}
    model = global_model(body, COLUMNS, 5)
    found = []
    for keep in (result_files.on_disk, lambda contribution, folder: contribution):
        monkeypatch.setattr("surgical_aggregation.server.models.aggregator.on_disk", keep)
        aggregator = SurgicalAggregator("fedavg", body_weighting=weighting)
        engine, rng = Engine(tmp_path), np.random.default_rng(1)
        sites = {f"site{n}": {k: np.float32(v + rng.random(v.shape)) for k, v in body.items()}
                 for n in range(5)}  # fmt: skip
        for site in sorted(sites, key=lambda name: rng.random()):
            sent = result(sites[site], COLUMNS)
            assert aggregator.accept(sent, context(site, model=model, engine=engine))
        data = from_shareable(aggregator.aggregate(context(model=model, engine=engine))).data
        found.append({name: value.tobytes() for name, value in data.items()})
    assert found[0] == found[1]

"""Results on the server's disk until the end of their round."""

from pathlib import Path

import numpy as np
import pytest
from nvflare.apis.dxo import DataKind, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.app_common.decomposers import numpy_decomposers
from nvflare.fuel.utils.fobs import dots, get_dot_handler

from flare import Engine, context, global_model, result
from surgical_aggregation.server.models import result_files
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.result_files import ArraysFile, NoRoomError, on_disk
from surgical_aggregation.wire import flare_internals

RNG = np.random.default_rng(0)
ARRAYS = {
    "conv/kernel": RNG.random((3, 5)).astype(np.float32),
    "half": RNG.random(7).astype(np.float16), "scalar": np.array(2.5),
    "transposed": RNG.random((4, 3)).T, "none": np.zeros((0, 3), np.float32),
}  # fmt: skip
BODY = {"conv/kernel": ARRAYS["conv/kernel"]}
COLUMNS = {"Nodule/Mass": (RNG.random(5).astype(np.float32), np.float32([0.5]))}


def resident():
    """Memory of this process that is no file's, MB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def test_arrays_are_the_same_bits_and_their_file_has_no_name(tmp_path):
    file = ArraysFile(tmp_path / "job")
    for name, value in ARRAYS.items():
        file.add({name: value})
    kept = file.arrays()
    assert list((tmp_path / "job").iterdir()) == [] and list(kept) == list(ARRAYS)
    for name, value in ARRAYS.items():
        assert (kept[name].dtype, kept[name].shape) == (value.dtype, value.shape)
        assert kept[name].tobytes() == value.tobytes()
        assert kept[name].ctypes.data % 64 == 0
    assert ArraysFile(tmp_path).arrays() == {}


def test_a_result_is_refused_when_it_exceeds_the_limit_and_not_when_it_is_whole(tmp_path):
    file, one = ArraysFile(tmp_path, limit=128), np.zeros(16)
    file.add({"a": one})
    with pytest.raises(ValueError, match="more than 128 bytes, the limit 'result_bytes'"):
        file.add({"b": np.zeros(1)})
    assert file.arrays().keys() == {"a"}


KINDS = ["M8[s]", "m8[D]", "V8", "U3", "S3", "c8", [("a", "f4"), ("b", "S8")]]


@pytest.mark.parametrize("others", [{}, BODY])
def test_what_is_no_number_is_not_written_and_keeps_its_dtype(tmp_path, others):
    kept = on_disk({str(kind): np.zeros(7, kind) for kind in KINDS} | others, tmp_path)
    assert [kept[str(kind)].dtype for kind in KINDS] == [np.dtype(kind) for kind in KINDS]
    assert {kept[str(kind)].size for kind in KINDS} == {0}
    assert all(kept[name].tobytes() == others[name].tobytes() for name in others)


@pytest.mark.parametrize("kind", [DataKind.WEIGHTS, DataKind.WEIGHT_DIFF])
def test_the_results_of_many_sites_take_no_memory(tmp_path, kind):
    """Nor do what differences are added to."""
    body = {f"layer{n}": np.zeros(2**17, np.float32) for n in range(8)}  # 4 MB
    model = global_model(body, COLUMNS, 5)
    engine, aggregator, at_first = Engine(tmp_path), SurgicalAggregator("fedavg"), None
    for number in range(40):
        trained = {name: value + np.float32(number) for name, value in body.items()}
        sent = result(on_disk(trained, tmp_path), model.columns, kind=kind)
        assert aggregator.accept(sent, context(f"site{number:02}", model=model, engine=engine))
        del sent, trained
        at_first = at_first or resident()
    averaged = from_shareable(aggregator.aggregate(context(model=model, engine=engine))).data
    assert resident() - at_first < 24  # forty results are 160 MB, the average 4
    assert {value.flat[0] for name, value in averaged.items() if name in body} == {19.5}


@pytest.mark.parametrize("kind", [DataKind.WEIGHTS, DataKind.WEIGHT_DIFF])
def test_on_a_full_disk_the_run_ends_with_the_reason(tmp_path, monkeypatch, panics, kind):
    full = Path("/dev/full").open
    monkeypatch.setattr(result_files.tempfile, "TemporaryFile", lambda **_: full("wb+"))
    model, engine = global_model(BODY, COLUMNS, 5), Engine(tmp_path)
    aggregator, fl_ctx = SurgicalAggregator("fedavg"), context("a", model=model, engine=engine)
    if kind == DataKind.WEIGHTS:
        takers = []
        monkeypatch.setattr(flare_internals, "receive_arrays", takers.append)
        aggregator.handle_event(EventType.START_RUN, fl_ctx)
        file = takers[0]()
        with pytest.raises(NoRoomError):
            file.add(BODY)
        assert file.arrays() == {}  # FLARE reports why the message could not be read
    else:
        assert not aggregator.accept(result(BODY, COLUMNS, kind=kind), fl_ctx)
    assert f"{str(tmp_path / 'server' / 'job')!r}" in panics[0]
    assert "No space left on device. The disk must hold a round's results of all sites" in panics[0]


def test_what_flare_receives_is_taken_piece_by_piece(tmp_path, monkeypatch):
    def download(arrays_received_cb, ref_id, **_):
        for piece in ({"T0": BODY["conv/kernel"]}, {"T1": COLUMNS["Nodule/Mass"][1]}):
            assert arrays_received_cb(piece) is None  # nothing is kept in memory
        return (ref_id or None), None

    numpy_decomposers.register()
    handler = get_dot_handler(dots.NUMPY_DOWNLOAD)
    monkeypatch.setattr(handler, "download", None)  # as it was, afterwards
    monkeypatch.setattr(flare_internals, "download_arrays", download)
    flare_internals.receive_arrays(lambda: ArraysFile(tmp_path))
    error, arrays = handler.download(fobs_ctx={}, ref_id="")
    assert error is None and list(arrays) == ["T0", "T1"]
    assert arrays["T0"].tobytes() == BODY["conv/kernel"].tobytes()
    assert handler.download(fobs_ctx={}, ref_id="broken") == ("broken", None)

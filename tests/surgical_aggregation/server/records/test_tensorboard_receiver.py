import pytest
from nvflare.apis.analytix import AnalyticsDataType
from nvflare.apis.utils.analytix_utils import create_analytic_dxo
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from flare import Engine, context
from surgical_aggregation.server.records.tensorboard_receiver import TensorBoardReceiver


@pytest.fixture
def drawn(tmp_path):
    """Let a site send figures (tag, value, kind, step); its curves, tag -> [(step, value)]."""

    def draw(*figures):
        receiver, fl_ctx = TensorBoardReceiver(), context(engine=Engine(tmp_path))
        receiver.initialize(fl_ctx)
        for tag, value, kind, step in figures:
            dxo = create_analytic_dxo(tag, value, kind, global_step=step)
            receiver.save(fl_ctx, dxo.to_shareable(), "north")
        receiver.finalize(fl_ctx)
        folder = tmp_path / "server/job/tb_events"
        assert [path.name for path in folder.iterdir()] == ["north"]
        assert len(list((folder / "north").iterdir())) == 1
        events = EventAccumulator(str(folder / "north")).Reload()
        return {
            tag: [(event.step, event.value) for event in events.Scalars(tag)]
            for tag in events.Tags()["scalars"]
        }

    return draw


def test_all_figures_of_all_messages_are_curves_of_one_run(drawn):
    kind = AnalyticsDataType.SCALARS
    assert drawn(
        ("train", {"bce": 0.5, "bce/Nodule/Mass": 0.25}, kind, 0),
        ("train", {"bce": 0.75}, kind, 1),
    ) == {"bce": [(0, 0.5), (1, 0.75)], "bce/Nodule/Mass": [(0, 0.25)]}


def test_a_single_scalar_is_drawn_as_flare_does(drawn):
    assert drawn(("rate", 0.5, AnalyticsDataType.SCALAR, 3)) == {"rate": [(3, 0.5)]}

"""Kits that let a job name more than component classes."""

import json

import pytest
from nvflare.apis.event_type import EventType

from flare import Engine, context
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.wire.allow_list import AllowListError, check_allow_list

ONE = "surgical_aggregation.site.executor.KerasExecutor"


@pytest.fixture
def kit(tmp_path):
    """Makes the context of a job in a kit with an allow-list."""

    def make(*allowed):
        local = tmp_path / "server/local"
        local.mkdir(parents=True)
        (local / "resources.json").write_text(json.dumps({"class_allow_list": allowed}))
        return context(engine=Engine(tmp_path))

    return make


@pytest.mark.parametrize(
    "whole", ["surgical_aggregation.", "cxr_study.common", "own.module.function", "*"]
)
def test_a_whole_package_is_refused_and_ends_the_servers_run(kit, panics, whole):
    fl_ctx = kit(ONE, whole)
    with pytest.raises(AllowListError, match=r"any job could run any command .*deploy kit"):
        check_allow_list(fl_ctx)
    RunRecord().handle_event(EventType.START_RUN, fl_ctx)
    assert len(panics) == 1 and f"with {whole} on 'class_allow_list'" in panics[0]


def test_classes_are_taken_and_so_are_flares_own_files(kit, panics):
    for fl_ctx in (context(engine=Engine()), kit(ONE)):
        check_allow_list(fl_ctx)
        RunRecord().handle_event(EventType.START_RUN, fl_ctx)
    assert panics == []

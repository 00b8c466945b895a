"""Kits that let a job name more than component classes."""

import json

import pytest
from nvflare.apis.event_type import EventType

from flare import Engine, context
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.site.executor import KerasExecutor
from surgical_aggregation.site.local_notes import CANNOT_PARTICIPATE

WARNS = "everything that is not"


@pytest.mark.parametrize("name", ["resources.json", "resources.json.default"])
@pytest.mark.parametrize("whole", ["cxr_study.common", "own.module.function", "*", WARNS, ""])
def test_where_a_job_may_name_a_whole_package_neither_server_nor_site_runs(
    tmp_path, panics, whole, name
):
    engine, file = Engine(tmp_path), tmp_path / "server/local" / name
    file.parent.mkdir(parents=True)
    allowed = ["surgical_aggregation.site.executor.KerasExecutor", *{whole} - {"", WARNS}]
    mode = {"class_list_enforcement_mode": "warn"} if whole == WARNS else {}
    file.write_text(json.dumps({"class_allow_list": allowed, **mode}))
    for component in (RunRecord(), KerasExecutor()):
        component.handle_event(EventType.START_RUN, context(engine=engine))
    reason = f"{file}: with {whole} on 'class_allow_list', any job could run any command here"
    assert [panic[: len(reason)] for panic in panics] == [reason] * bool(whole)
    assert (f"{CANNOT_PARTICIPATE}: {reason}" in engine.notes()) == bool(whole)

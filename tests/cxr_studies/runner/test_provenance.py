import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.study_selection import Selection
from cxr_studies.runner import provenance


@pytest.mark.parametrize(
    ("gpus", "wanted"),
    [
        ([], "CPU"),
        ([{"device_name": "H100"}, {"device_name": "H100"}], "H100"),
        ([{"device_name": "H100"}, {}], "H100, GPU"),
    ],
)
def test_gpus_are_named_each_kind_once_or_else_the_cpu(monkeypatch, gpus, wanted):
    details = SimpleNamespace(get_device_details=lambda gpu: gpu)
    config = SimpleNamespace(list_physical_devices=lambda kind: gpus, experimental=details)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
    assert provenance.device() == wanted


def test_a_report_of_another_origin_is_told(tmp_path):
    def told(study="/a/mine.yaml", selection=None):
        data = StudyData.model_construct(path=Path("/b/data.yaml"))
        return provenance.origin(Path(study), data, selection or Selection())

    assert told() == "study /a/mine.yaml, data /b/data.yaml, all of it"
    assert provenance.another(told(), tmp_path) is None
    provenance.write_origin(told(), tmp_path)
    assert provenance.another(told(), tmp_path) is None
    assert provenance.another(told("/c/mine.yaml"), tmp_path) == told()
    assert provenance.another(told(selection=Selection(quick=True)), tmp_path) == told()

import sys
from types import SimpleNamespace

import pytest

from cxr_studies.runner import one_run


@pytest.mark.parametrize(("gpus", "wanted"), [
    ([], "CPU"),
    ([{"device_name": "H100"}, {"device_name": "H100"}], "H100"),
    ([{"device_name": "H100"}, {}], "H100, GPU"),
])  # fmt: skip
def test_gpus_are_named_each_kind_once_or_else_the_cpu(monkeypatch, gpus, wanted):
    details = SimpleNamespace(get_device_details=lambda gpu: gpu)
    config = SimpleNamespace(list_physical_devices=lambda kind: gpus, experimental=details)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
    assert one_run.device() == wanted

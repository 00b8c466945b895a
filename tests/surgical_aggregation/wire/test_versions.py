"""Which versions may train together, and which differences are named."""

import pytest

from surgical_aggregation.wire import versions
from surgical_aggregation.wire.versions import differences, parse_versions, version_fault

OURS = versions.OURS
UNKNOWN = "unknown"


@pytest.mark.parametrize(("theirs", "refused"), [
    ("1.2.3", None), ("1.2.0", None), ("1.2", None), ("1.2.4rc1", None),
    ("1.3.3", "1.3.3"), ("1.20.3", "1.20.3"), ("2.2.3", "2.2.3"), ("", ""), ("x\ny", r"x\ny"),
    (None, UNKNOWN), (3, UNKNOWN),
])  # fmt: skip
def test_major_and_minor_are_the_servers_else_both_versions_are_named(monkeypatch, theirs, refused):
    monkeypatch.setattr(versions, "__version__", "1.2.3")
    fault = version_fault(parse_versions({OURS: theirs, "another": "1.2.3"}))
    if refused is None:
        assert fault is None
    else:
        assert fault.startswith(f"its version of {OURS} is {refused}; the server's is 1.2.3, and")


@pytest.mark.parametrize("declared", [None, "0.1.0", ["0.1.0"], {1: "0.1.0"}])
def test_what_is_no_table_of_versions_has_none(declared):
    assert parse_versions(declared) == {}


def test_a_package_that_parties_have_in_different_versions_is_named_with_who_has_which():
    of = {"server": {OURS: "1"}, "a": {OURS: "1", "keras": "3.6"}, "b": {OURS: "1", "keras": "3.7"}}
    assert differences(of) == ["keras 3.6 (a), 3.7 (b)"]
    assert differences({}) == []

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from cxr_audit.census.shareable_census import CensusError, read_shared
from cxr_audit.report.audit_report import write_audit, write_cross_site


@pytest.fixture(scope="module")
def audit(drawn_sites, tmp_path_factory):
    folder, reported = tmp_path_factory.mktemp("audit") / "out", []
    how = {"size": 16, "min_count": 10, "progress": lambda *done: reported.append(done)}
    path = write_audit(sorted(Path(drawn_sites).glob("*.yaml")), folder, **how)
    assert path == folder / "audit.html" and reported
    return folder


def test_counts_are_those_of_the_files_and_no_small_one_and_no_name_is_shared(drawn, audit):
    sites = json.loads((audit / "audit.json").read_text())["sites"]
    for name, site in sites.items():
        path = audit / "shared" / f"{name}.json"
        assert read_shared(path).to_json() == site["shared"]
        text = path.read_text()
        assert not any(word in text for word in (".png", ".jpg", "patient0", "csv", "/"))
        values = json.loads(text)
        cells = [values[key] for key in ("views", "sex", "age")]
        cells += [entry["read"] for entry in values["classes"].values()]
        assert not re.search(r"[ \[][1-9][,}\]]", json.dumps(cells))
        assert None in values["age"].values()
    local = sites["nih"]["local"]
    csv = pd.read_csv(drawn / "nih/Data_Entry_2017_v2020.csv")
    assert local["rows"] == len(csv)
    assert local["total"]["images"] == len(csv) - sum(local["dropped"].values())
    assert local["views_read"]["AP"] == (csv["View Position"] == "AP").sum()


def test_shared_parts_alone_are_compared(audit, tmp_path):
    whole = json.loads((audit / "audit.json").read_text())["across"]
    shared = [read_shared(path) for path in sorted((audit / "shared").glob("*.json"))]
    page = write_cross_site(shared, tmp_path)
    assert page == tmp_path / "cross_site.html" and page.stat().st_size > 10_000
    across = json.loads((tmp_path / "cross_site.json").read_text())["across"]
    assert across["intensity_distances"] == whole["intensity_distances"]


def test_two_site_files_of_one_name_are_refused(drawn, tmp_path):
    path = drawn / "sites/nih.yaml"
    with pytest.raises(CensusError, match="more than one is called 'nih'"):
        write_audit([path, path], tmp_path, size=32, min_count=10)
    assert not list(tmp_path.iterdir())

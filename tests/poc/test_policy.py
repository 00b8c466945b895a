"""What the policies of sites and server withhold, in a run between real processes."""

import json
import re
import zipfile

import pytest

from surgical_aggregation.site.local_notes import notes_file
from tiny_site import COMPLAINT

WITHHELD = ("Private Sign", "Rare Sign")


@pytest.fixture(scope="module")
def result(results):
    return results.trained


@pytest.fixture(scope="module")
def servers_bytes(network, results):
    """Content of every file of the server's, archives unpacked, once the jobs are done."""
    contents = {}
    for folder in (network.server, network.folder / "storage"):
        for path in folder.rglob("*"):
            if path.is_file() and zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    for name in archive.namelist():
                        contents[f"{path}/{name}"] = archive.read(name)
            elif path.is_file():
                contents[str(path)] = path.read_bytes()
    return contents


def holding(contents, name):
    """Names of the files whose bytes hold a name in any case, in one or two bytes a letter."""
    forms = {name.lower().encode(encoding) for encoding in ("utf-8", "utf-16-le")}
    return [path for path, content in contents.items() if any(f in content.lower() for f in forms)]


@pytest.mark.parametrize("name", WITHHELD)
def test_a_withheld_class_is_in_no_model_and_in_no_byte_at_the_server(result, servers_bytes, name):
    assert name not in result.best.manifest["classes"]
    assert name not in result.last.manifest["classes"]
    assert holding(servers_bytes, "Pleural Effusion")  # the search can find a name at all
    assert holding(servers_bytes, name) == []


def test_the_sites_own_notes_alone_say_what_it_withholds_and_why(network, result, servers_bytes):
    kit = network.kit("chexpert")
    notes = (kit / notes_file(result.job_id)).read_text()
    why = re.search(r"\d+ positives, 'min_positives' is \d+", notes)[0]
    assert f"withholds: Private Sign (not in 'share'); Rare Sign ({why})" in notes
    logs = {
        str(path): path.read_bytes()
        for folder in (kit, kit / result.job_id)
        for path in folder.iterdir()
        if path.suffix in (".txt", ".json", ".log")
    }
    assert holding(logs, "declared 2 classes: Edema, Fracture")
    for withheld in (*WITHHELD, why, "not in 'share'"):
        assert holding(logs, withheld) == []
    assert holding(servers_bytes, why) == []


def test_logs_at_the_server_are_those_of_the_site_that_streams_them(network, result, servers_bytes):
    assert holding(servers_bytes, "identity=chexpert")
    for site in ("nih", "mercy"):
        assert holding(servers_bytes, f"identity={site}") == []
    errors = network.kit("nih") / result.job_id / "error_log.txt"
    assert COMPLAINT in errors.read_text()
    assert holding(servers_bytes, COMPLAINT) == []


def test_counts_come_from_the_site_that_shares_them_alone(result):
    measured = json.loads((result.server / "cross_site_val/cross_val_results.json").read_text())
    counted = {site: "positives/Edema" in measured[site]["SRV_best"] for site in measured}
    assert counted == {"nih": True, "chexpert": False, "mercy": False}


def test_a_class_that_a_site_may_not_train_is_refused_whole_and_the_run_goes_on(result):
    refused = [event for event in result.record if event["event"] == "refused"]
    assert {event["site"] for event in refused} == {"mercy"}
    assert "not permitted to teach ['Support Devices']" in refused[0]["reason"]
    classes = result.last.manifest["classes"]
    assert "Support Devices" not in classes
    assert classes["Fracture"]["sites"] == ["chexpert"]
    assert result.status == "FINISHED:COMPLETED"

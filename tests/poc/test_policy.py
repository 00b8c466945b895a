"""What the places' policies keep back, in a run between real server and client processes."""

import json
import re
import zipfile

import pytest

from surgical_aggregation.site.local_notes import notes_file
from tiny_site import COMPLAINT


@pytest.fixture(scope="module")
def result(results):
    return results["command"]


@pytest.fixture(scope="module")
def notes(network, result):
    """What chexpert tells its own hospital of the run."""
    return (network.kit("chexpert") / notes_file(result.job_id)).read_text()


@pytest.fixture(scope="module")
def why(notes):
    """Why chexpert withholds the class that it shares, with the exact count."""
    found = re.search(r"\d+ positives, 'min_positives' is \d+", notes)
    return found[0]


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


class TestSitePolicy:
    @pytest.mark.parametrize("name", ["Private Sign", "Rare Sign"])
    def test_a_withheld_class_is_not_in_the_model(self, result, name):
        for model in (result.best, result.last):
            assert name not in model.manifest["classes"]

    @pytest.mark.parametrize("name", ["Private Sign", "Rare Sign"])
    def test_a_withheld_class_is_named_in_no_byte_at_the_server(self, servers_bytes, name):
        assert holding(servers_bytes, "Pleural Effusion")  # the search can find a name at all
        assert holding(servers_bytes, name) == []

    def test_the_logs_at_the_server_are_those_of_the_site_that_streams_them(self, servers_bytes):
        assert holding(servers_bytes, "identity=chexpert")
        for site in ("nih", "mercy"):
            assert holding(servers_bytes, f"identity={site}") == []

    def test_the_sites_own_notes_say_what_it_withholds_and_why(self, notes, why):
        assert f"withholds: Private Sign (not in 'share'); Rare Sign ({why})" in notes

    def test_no_log_of_the_site_does_whoever_reads_it(self, network, result, servers_bytes, why):
        kit = network.kit("chexpert")
        logs = {
            str(path): path.read_bytes()
            for folder in (kit, kit / result.job_id)
            for path in folder.iterdir()
            if path.suffix in (".txt", ".json", ".log")
        }
        assert holding(logs, "declared 2 classes: Edema, Fracture")
        for withheld in ("Private Sign", "Rare Sign", why, "not in 'share'"):
            assert holding(logs, withheld) == []
        assert holding(servers_bytes, why) == []

    def test_counts_come_from_the_site_that_lets_them_out_alone(self, result):
        measured = json.loads((result.server / "cross_site_val/cross_val_results.json").read_text())
        told = {site: "positives/Edema" in measured[site]["SRV_best"] for site in measured}
        assert told == {"nih": True, "chexpert": False, "mercy": False}

    def test_no_line_of_a_sites_error_log_is_in_a_byte_at_the_server(
        self, network, result, servers_bytes
    ):
        errors = network.kit("nih") / result.job_id / "error_log.txt"
        assert COMPLAINT in errors.read_text()
        assert holding(servers_bytes, COMPLAINT) == []


class TestServerPolicy:
    def test_a_class_that_a_site_may_not_teach_is_refused_whole_with_the_reason(self, result):
        refused = [event for event in result.record if event["event"] == "refused"]
        assert {event["site"] for event in refused} == {"mercy"}
        assert "not permitted to train ['Support Devices']" in refused[0]["reason"]
        assert "Support Devices" not in result.last.manifest["classes"]

    def test_the_run_goes_on_without_it(self, result):
        assert result.status == "FINISHED:COMPLETED"
        assert result.last.manifest["classes"]["Fracture"]["sites"] == ["chexpert"]

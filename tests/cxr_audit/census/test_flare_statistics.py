import json
import traceback
from pathlib import Path

import pytest

from cxr_audit.census.flare_counts import from_counts
from cxr_audit.census.flare_statistics import CensusStatistics
from cxr_study.common import offered_data
from cxr_study.jobs.job import Job
from cxr_study.jobs.presets import JobError
from flare import Engine, site_context

JOB = Path(__file__).parents[3] / "jobs/census"


def counts(statistics):
    ((dataset, features),) = statistics.features().items()
    return {f.feature_name: statistics.count(dataset, f.feature_name) for f in features}


def test_every_feature_has_a_count_and_all_make_a_shared_census(drawn_sites, monkeypatch):
    census = from_counts("nih", counts(CensusStatistics("nih", drawn_sites)))
    assert len(census.classes) == 14 and census.images == 200 and census.min_count == 10
    demo = offered_data.DemoData((), lambda: Path(drawn_sites), None)
    monkeypatch.setattr(offered_data, "demo_data", lambda _: demo)
    assert CensusStatistics("nih").features()


def test_small_counts_are_no_features(drawn_sites):
    found = counts(CensusStatistics("nih", drawn_sites)).items()
    cells = [n for name, n in found if name.startswith(("label", "age", "sex"))]
    assert cells and not [n for n in cells if 0 < n < 10]
    with pytest.raises(ValueError, match=r"none/nih\.yaml does not exist"):
        CensusStatistics("nih", f"{drawn_sites}/none").features()


class TestPolicy:
    @pytest.fixture
    def statistics(self, drawn_sites, tmp_path):
        def make(site="nih", **policy):
            statistics = CensusStatistics(site)
            policy = {"site_files": drawn_sites, **policy}
            statistics.initialize(site_context("nih", Engine(tmp_path), policy))
            return statistics

        return make

    @pytest.mark.parametrize(("policy", "reason"), [
        ({}, "a census needs 'report_counts' true"),
        ({"report_counts": True, "min_images": 1000}, "'min_images' 1000 training image"),
        ({"report_counts": True, "site_files": "/nowhere"}, "/nowhere/nih.yaml"),
        ({"report_counts": True, "share": "Edema"}, "'share' needs a list"),
        ({"report_counts": True, "site": "chexpert"}, "nih.yaml; the job names 'chexpert'"),
    ])  # fmt: skip
    def test_a_site_that_counts_nothing_notes_why(self, statistics, tmp_path, policy, reason):
        with pytest.raises(ValueError) as raised:  # FLARE logs it with its trace
            statistics(**policy).features()
        trace = "".join(traceback.format_exception(raised.value))
        output = Engine(tmp_path).notes().partition("this site counts nothing: ")[2].strip()
        assert reason in output and output not in trace
        assert "this site counts nothing; see local_notes/job.txt" in trace

    def test_a_class_that_is_withheld_or_has_too_few_positives_is_in_no_feature(self, statistics):
        features = counts(statistics(report_counts=True, share=["Edema", "Mass"]))
        assert set(from_counts("nih", features).classes) == {"Edema", "Mass"}
        assert not [name for name in features if "Effusion" in name or "Nodule" in name]
        every = counts(statistics(report_counts=True))
        assert every["total: images"] == 200
        rare = counts(statistics(report_counts=True, min_positives=12))
        left = set(from_counts("nih", rare).classes)
        assert 0 < len(left) < len(from_counts("nih", every).classes)


def test_the_job_asks_for_counts_alone_for_all_else_names_classes_to_every_site():
    server = json.loads((JOB / "app_server/config/config_fed_server.json").read_text())
    (workflow,) = server["workflows"]
    assert workflow["args"]["statistic_configs"] == {"count": {}}


@pytest.mark.parametrize("setting", ["min_count", "image_size"])
def test_no_job_chooses_what_is_small(setting):
    """Two choices on equal data would tell a small count, as a difference."""
    with pytest.raises(JobError, match=f"no setting '{setting}'"):
        Job.asked("census", given=[f"{setting}=32"])
    with pytest.raises(TypeError, match=setting):
        CensusStatistics("nih", **{setting: 32})

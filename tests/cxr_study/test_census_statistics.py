import dataclasses
from pathlib import Path

import pytest
from pyhocon import ConfigFactory

from cxr_study import census_statistics, job_folder
from cxr_study.audit.flare_job import from_counts
from cxr_study.census_statistics import CensusStatistics
from cxr_study.phantom import write_phantom
from flare import context

JOB = Path(__file__).parents[2] / "jobs/census"


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    root = tmp_path_factory.mktemp("census") / "phantom"
    write_phantom(root, images_per_site=120, size=32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURGAGG_CACHE", str(root.parent / "cache"))
        yield str(root / "sites")


def counts(statistics):
    ((dataset, features),) = statistics.features().items()
    return {f.feature_name: statistics.count(dataset, f.feature_name) for f in features}


def test_every_feature_has_a_count_and_all_make_a_shared_census(sites):
    census = from_counts("nih", counts(CensusStatistics("nih", sites, 32)))
    assert len(census.classes) == 14 and census.images == 120 and census.min_count == 10


def test_a_job_cannot_ask_for_counts_smaller_than_the_site_withholds(sites):
    assert counts(CensusStatistics("nih", sites, 32, min_count=1))["total: min_count"] == 5


def test_small_counts_are_no_features(sites):
    statistics = CensusStatistics("nih", sites, 32, min_count=12)
    cells = [
        n for name, n in counts(statistics).items() if name.startswith(("label", "age", "sex"))
    ]
    assert cells and not [n for n in cells if 0 < n < 12]


def test_it_touches_no_file_before_it_is_asked(tmp_path):
    CensusStatistics("nih", str(tmp_path / "nowhere"))


def test_a_site_without_a_site_file_is_told(tmp_path):
    with pytest.raises(ValueError, match=r"nih\.yaml does not exist"):
        CensusStatistics("nih", str(tmp_path)).features()


def test_without_a_folder_the_embedded_study_is_counted(sites, monkeypatch):
    study = dataclasses.make_dataclass("Study", ["sites"])(Path(sites))
    monkeypatch.setattr(census_statistics, "embedded_study", lambda: study)
    assert CensusStatistics("nih").features()


class TestPolicy:
    def statistics(self, sites, **policy):
        statistics = CensusStatistics("nih", sites, 32)
        statistics.initialize(context(policy=policy))
        return statistics

    def test_a_site_with_one_counts_nothing_unless_it_says_so(self, sites):
        with pytest.raises(ValueError, match="a census needs 'report_counts' true"):
            self.statistics(sites).features()

    def test_a_withheld_class_is_in_no_feature(self, sites):
        features = counts(self.statistics(sites, report_counts=True, share=["Edema", "Mass"]))
        assert set(from_counts("nih", features).classes) == {"Edema", "Mass"}
        assert not [name for name in features if "Effusion" in name or "Nodule" in name]

    def test_a_class_with_too_few_positives_is_in_no_feature(self, sites):
        all_of_them = counts(self.statistics(sites, report_counts=True))
        rare = counts(self.statistics(sites, report_counts=True, min_positives=12))
        left = set(from_counts("nih", rare).classes)
        assert 0 < len(left) < len(from_counts("nih", all_of_them).classes)

    def test_a_site_with_too_few_images_counts_nothing(self, sites):
        with pytest.raises(ValueError, match="'min_images' 1000 training images"):
            self.statistics(sites, report_counts=True, min_images=1000).features()

    def test_the_sites_own_folder_is_counted_where_the_job_names_none(self, sites):
        statistics = self.statistics(None, report_counts=True, site_files=sites)
        assert counts(statistics)["total: images"] == 120

    def test_a_malformed_one_is_refused_and_not_ignored(self, sites):
        with pytest.raises(ValueError, match="'share' needs a list"):
            self.statistics(sites, report_counts=True, share="Edema").features()


def test_the_job_asks_for_counts_alone_for_all_else_names_classes_to_every_site():
    server = ConfigFactory.parse_file(str(JOB / job_folder.SERVER_CONFIG))
    (workflow,) = server["workflows"]
    assert dict(workflow["args"]["statistic_configs"]) == {"count": {}}

import json

import pytest

from cxr_study.data.census.flare_counts import from_counts, from_flare_job, to_counts
from cxr_study.data.census.shareable_census import CensusError, share


def written(tmp_path, *sites):
    """The file FLARE writes: feature -> count -> site -> data set, with sums under Global."""
    features = {}
    for site in sites:
        for feature, count in to_counts(site).items():
            entry = features.setdefault(feature, {"count": {"Global": {"census": 99}}})["count"]
            entry[site.site] = {"census": count}
    path = tmp_path / "census.json"
    path.write_text(json.dumps(features))
    return path


def test_all_but_the_moments_come_back(shared, tmp_path):
    (again,) = from_flare_job(written(tmp_path, shared))
    assert again.to_json() == shared.to_json() | {"features": None}


def test_a_withheld_count_is_not_there_and_comes_back_withheld(large_census, tmp_path):
    shared = share(large_census(4), 10, None, None)
    assert None in shared.sex.values() and None in shared.classes["Edema"].read.values()
    assert None not in to_counts(shared).values()
    (again,) = from_flare_job(written(tmp_path, shared))
    assert again.to_json() == shared.to_json()


def test_a_class_may_be_called_like_a_descriptor(shared):
    shared.classes["sex"] = shared.classes["intensity"] = shared.classes["Edema"]
    assert (
        from_counts("here", to_counts(shared)).to_json()["classes"] == shared.to_json()["classes"]
    )


def test_sums_over_the_sites_are_no_site(shared, tmp_path):
    assert [site.site for site in from_flare_job(written(tmp_path, shared))] == ["here"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"Age": {"mean": {}}}', '{"Age": {"count": 3}}'])
def test_another_file_is_refused_by_name(tmp_path, text):
    path = tmp_path / "census.json"
    path.write_text(text)
    with pytest.raises(CensusError, match=r"census\.json"):
        from_flare_job(path)


def test_statistics_of_another_job_are_refused():
    with pytest.raises(CensusError, match=r"needs the counts of the job census, .* got Age"):
        from_counts("here", {"Age": 3})

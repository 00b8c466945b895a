import json

import pytest

from cxr_audit.census.flare_counts import from_counts, from_flare_job, to_counts
from cxr_audit.census.pixels import BINS
from cxr_audit.census.shareable_census import CensusError, share


def again(tmp_path, site):
    """A census from the file FLARE writes: feature -> count -> site -> data set, with sums."""
    features = {
        feature: {"count": {"Global": {"census": 99}, site.site: {"census": count}}}
        for feature, count in to_counts(site).items()
    }
    path = tmp_path / "census.json"
    path.write_text(json.dumps(features))
    (found,) = from_flare_job(path)
    return found


def test_all_counts_come_back(shared, tmp_path):
    assert again(tmp_path, shared).to_json() == shared.to_json()
    # A class may be called like a descriptor.
    shared.classes["sex"] = shared.classes["intensity"] = shared.classes["Edema"]
    assert again(tmp_path, shared).to_json()["classes"] == shared.to_json()["classes"]


def test_a_withheld_count_is_left_out_and_comes_back_withheld(large_census, tmp_path):
    shared = share(large_census(4), 10, None)
    assert None in shared.sex.values() and None in shared.classes["Edema"].read.values()
    assert None not in to_counts(shared).values()
    assert again(tmp_path, shared).to_json() == shared.to_json()


@pytest.mark.parametrize("text", ["{", "[1]", '{"Age": {"mean": {}}}', '{"Age": {"count": 3}}'])
def test_another_file_is_refused_by_name(tmp_path, text):
    path = tmp_path / "census.json"
    path.write_text(text)
    with pytest.raises(CensusError, match=r"census\.json"):
        from_flare_job(path)
    with pytest.raises(CensusError, match=r"needs the counts of the job census, .* got Age"):
        from_counts("here", {"Age": 3})


@pytest.mark.parametrize(("counts", "where"), [
    ({"total: images": -5}, "key 'images'"), ({"label positive: Edema": 10**300}, "'positive'"),
    ({f"intensity: {i}": 0 for i in range(BINS)}, "key 'intensity'"),
    ({"uncertain zeros: \x1b[2K": 1}, r"key '\\x1b\[2K'"),
])  # fmt: skip
def test_what_no_site_can_have_counted_is_refused_with_the_sites_name(shared, counts, where):
    with pytest.raises(CensusError, match=rf"site here: .*{where}"):
        from_counts("here", to_counts(shared) | counts)

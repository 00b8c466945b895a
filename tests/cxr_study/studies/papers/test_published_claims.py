import re

import pytest

from cxr_study.jobs.methods import Row
from cxr_study.studies.analysis.study_results import GROUPS
from cxr_study.studies.papers import published_claims
from cxr_study.studies.papers.claim import (
    AHEAD,
    EVERY_SITE,
    GROWS_WITH_SITES,
    GROWS_WITH_UNSHARED,
    KINDS,
    MORE_EVEN,
    SAME,
)
from cxr_study.studies.papers.published_results import read
from cxr_study.studies.plan.study_file import read_study, shipped

CLAIMS = published_claims.read()
PAIRS = [(claim, which) for claim in CLAIMS for which in claim.comparisons]


def named(values):
    which = values[1]
    return f"{values[0].study}: {values[0].text} ({which.worse.name}, {which.test}, {which.group})"


def published(claim, scenario, row, test, group, model=None):
    """Mean AUROC that one of a claim's sources has of a model; None: it has none."""
    sources = {
        "ML4H": "ml4h2024",
        "2301.06683": "arxiv2301.06683v1",
        "2303.06180": "arxiv2303.06180",
    }
    cited = [name for text, name in sources.items() if text in claim.source]
    models = (model,) if model else ("local", test, group, "global")
    found = {
        line.place.model: line.auroc
        for line in read()
        if line.source in cited
        and line.study == claim.study
        and line.place.scenario == scenario
        and line.place.row in (row, Row(row.method, ""))
        and (line.place.test, line.place.group) == (test, group)
    }
    return next((found[each] for each in models if each in found), None)


def both(claim, which, scenario, group=None):
    of = (which.test, group or which.group)
    return (
        published(claim, scenario, which.better, *of),
        published(claim, scenario, which.worse, *of, which.model),
    )


@pytest.mark.parametrize("pair", PAIRS, ids=map(named, PAIRS))
def test_claims_are_about_what_the_shipped_studies_run(pair):
    claim, which = pair
    assert claim.study in shipped()
    study = read_study(claim.study)
    scenarios = [each for each in study.scenarios if each.name in (which.scenarios or (each.name,))]
    assert scenarios and set(which.scenarios) <= {scenario.name for scenario in study.scenarios}
    for scenario in scenarios:
        assert set(which.rows) <= set(study.rows_of(scenario))
    assert which.test in (*study.tests, *[EVERY_SITE] * study.given)
    assert which.group in GROUPS and which.kind in KINDS
    assert which.model is None or which.model in scenarios[0].sites
    assert which.better != which.worse


def test_every_study_with_a_source_has_claims_and_no_comparison_is_claimed_twice():
    without = {name for name in shipped() if read_study(name).source == "this project's"}
    assert {claim.study for claim in CLAIMS} == set(shipped()) - without
    assert len({(claim.study, which) for claim, which in PAIRS}) == len(PAIRS)


SINGLE = [
    claim
    for claim in CLAIMS
    if claim.study != "methods"  # made like no published one
    and all(each.kind == AHEAD and len(each.scenarios) == 1 for each in claim.comparisons)
]


@pytest.mark.parametrize("claim", SINGLE, ids=lambda claim: f"{claim.study}: {claim.text}")
def test_what_is_claimed_of_one_scenario_is_published_so(claim):
    pairs = [both(claim, which, which.scenarios[0]) for which in claim.comparisons]
    assert all(better >= worse for better, worse in pairs)
    told = re.sub(r"p (<=|<|=|>) 0\.\d+", "", claim.published)
    values = {f"{value:.2f}" for pair in pairs for value in pair}
    assert set(re.findall(r"0\.\d+", told)) == values


EVEN = [pair for pair in PAIRS if pair[1].kind == MORE_EVEN]


@pytest.mark.parametrize("pair", EVEN, ids=map(named, EVEN))
def test_what_is_lost_from_shared_to_unique_classes_is_published_so(pair):
    claim, which = pair
    shared, unique = (
        both(claim, which, which.scenarios[0], group) for group in ("shared", "unique")
    )
    better, worse = (a - b for a, b in zip(shared, unique, strict=True))
    assert better < worse
    for value in (better, worse):
        assert f"{value:.2f}" in claim.published


GROWING = [pair for pair in PAIRS if pair[1].kind in (GROWS_WITH_SITES, GROWS_WITH_UNSHARED)]


@pytest.mark.parametrize("pair", GROWING, ids=map(named, GROWING))
def test_growing_leads_are_published_so(pair):
    claim, which = pair
    ends = ("2", "10") if which.kind == GROWS_WITH_SITES else ("14", "0")
    pairs = [both(claim, which, end) for end in ends]
    first, last = (better - worse for better, worse in pairs)
    assert first < last
    told = claim.published
    if which.worse.method == "partial_loss":  # told as leads, else as what both reach
        assert all(f"{lead:.2f}" in told or round(lead, 2) == 0 for lead in (first, last))
    else:
        assert all(f"{value:.2f}" in told for pair in pairs for value in pair)


AVERAGES = [
    pair
    for pair in PAIRS
    if pair[1].kind == AHEAD
    and not pair[1].scenarios
    and (pair[0].study == "data-size" or pair[1].worse.method in ("centralised", "partial_loss"))
]


@pytest.mark.parametrize("pair", AVERAGES, ids=map(named, AVERAGES))
def test_means_over_scenarios_are_those_of_the_tables_of_version_1(pair):
    claim, which = pair
    scenarios = [scenario.name for scenario in read_study(claim.study).scenarios]
    group = "all" if which.test == "nih" else "chexpert"
    pairs = [both(claim, which, name, group) for name in scenarios]
    better, worse = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    assert better > worse
    told = [float(number) for number in re.findall(r"0\.\d\d(?!\d)", claim.published)]
    if claim.study == "data-size":  # told at both ends, not on average
        assert {value for end in (pairs[0], pairs[-1]) for value in end} <= set(told)
    else:  # the text gives 0.73 where its table gives 0.724
        assert all(min(abs(mean - each) for each in told) < 0.006 for mean in (better, worse))


def test_same_models_are_claimed_where_all_sites_have_the_same_classes():
    assert {(claim.study, *which.scenarios) for claim, which in PAIRS if which.kind == SAME} == {
        ("shared-classes", "14"),
        ("nih-chexpert", "7"),
        ("methods", "equal classes"),
    }
    for _, which in PAIRS:
        if which.kind == SAME:
            assert which.better.strategy == which.worse.strategy

import re

import pytest

from cxr_studies.analysis.study_results import GROUPS
from cxr_studies.papers import published_claims
from cxr_studies.papers.claim import (
    AHEAD,
    EVERY_SITE,
    GROWS_WITH_SITES,
    GROWS_WITH_UNSHARED,
    KINDS,
    MORE_EVEN,
    SAME,
)
from cxr_studies.papers.published_results import read
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import read_study, shipped

CLAIMS = published_claims.read()
PAIRS = [(claim, which) for claim in CLAIMS for which in claim.comparisons]


def named(pair):
    claim, which = pair
    return f"{claim.study}: {claim.text} ({which.worse.name}, {which.test}, {which.group})"


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
    return next((found[name] for name in models if name in found), None)


def both(claim, which, scenario, group=None):
    of = (which.test, group or which.group)
    return (
        published(claim, scenario, which.better, *of),
        published(claim, scenario, which.worse, *of, which.model),
    )


def each(*kinds, of=lambda claim, which: True):
    """Mark of a test that is run for each comparison of such kinds."""
    chosen = [pair for pair in PAIRS if pair[1].kind in kinds and of(*pair)]
    return pytest.mark.parametrize(("claim", "which"), chosen, ids=map(named, chosen))


@pytest.mark.parametrize(("claim", "which"), PAIRS, ids=map(named, PAIRS))
def test_claims_are_about_what_the_shipped_studies_run(claim, which):
    assert claim.study in shipped()
    study = read_study(claim.study)
    scenarios = [s for s in study.scenarios if s.name in (which.scenarios or (s.name,))]
    assert scenarios and set(which.scenarios) <= {scenario.name for scenario in study.scenarios}
    for scenario in scenarios:
        assert set(which.rows) <= set(study.rows_of(scenario))
    assert which.test in (*study.tests, *[EVERY_SITE] * study.given)
    assert which.group in GROUPS and which.kind in KINDS
    assert which.model is None or which.model in scenarios[0].sites
    assert which.better != which.worse


def test_every_study_with_a_source_has_claims_and_no_comparison_is_claimed_twice():
    studies = [read_study(name) for name in shipped()]
    about = {each.claims or each.name for each in studies if each.source != "this project's"}
    assert {claim.study for claim in CLAIMS} == about
    assert len({(claim.study, which) for claim, which in PAIRS}) == len(PAIRS)


def single(claim):
    """Whether a claim is of one scenario; the study "methods" is made like no published one."""
    scenarios = [len(which.scenarios) for which in claim.comparisons if which.kind == AHEAD]
    return claim.study != "methods" and scenarios == [1] * len(claim.comparisons)


@pytest.mark.parametrize("claim", list(filter(single, CLAIMS)), ids=lambda claim: claim.text)
def test_claims_about_one_scenario_match_the_published_figures(claim):
    pairs = [both(claim, which, which.scenarios[0]) for which in claim.comparisons]
    assert all(better >= worse for better, worse in pairs)
    told = re.sub(r"p (<=|<|=|>) 0\.\d+", "", claim.published)
    values = {f"{value:.2f}" for pair in pairs for value in pair}
    assert set(re.findall(r"0\.\d+", told)) == values


@each(MORE_EVEN)
def test_losses_from_shared_to_unique_classes_match_the_published_figures(claim, which):
    shared, unique = (
        both(claim, which, which.scenarios[0], group) for group in ("shared", "unique")
    )
    better, worse = (a - b for a, b in zip(shared, unique, strict=True))
    assert better < worse
    assert f"{better:.2f}" in claim.published and f"{worse:.2f}" in claim.published


@each(GROWS_WITH_SITES, GROWS_WITH_UNSHARED)
def test_growing_leads_match_the_published_figures(claim, which):
    ends = ("2", "10") if which.kind == GROWS_WITH_SITES else ("14", "0")
    pairs = [both(claim, which, end) for end in ends]
    first, last = (better - worse for better, worse in pairs)
    assert first < last
    told = claim.published
    if which.worse.method == "partial_loss":  # told as leads, else as what both reach
        assert all(f"{lead:.2f}" in told or round(lead, 2) == 0 for lead in (first, last))
    else:
        assert all(f"{value:.2f}" in told for pair in pairs for value in pair)


def averaged(claim, which):
    """Whether a paper gives the mean over the scenarios, or the ends."""
    told = claim.study == "data-size" or which.worse.method in ("centralised", "partial_loss")
    return told and not which.scenarios


@each(AHEAD, of=averaged)
def test_means_over_scenarios_are_those_of_the_tables_of_version_1(claim, which):
    scenarios = [scenario.name for scenario in read_study(claim.study).scenarios]
    group = "all" if which.test == "nih" else "chexpert"
    pairs = [both(claim, which, name, group) for name in scenarios]
    better, worse = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    assert better > worse
    told = [float(number) for number in re.findall(r"0\.\d\d(?!\d)", claim.published)]
    if claim.study == "data-size":  # told at both ends, not on average
        assert {value for end in (pairs[0], pairs[-1]) for value in end} <= set(told)
    else:  # the text gives 0.73 where its table gives 0.724
        assert all(min(abs(mean - one) for one in told) < 0.006 for mean in (better, worse))


def test_same_models_are_claimed_where_all_sites_have_the_same_classes():
    same = [pair for pair in PAIRS if pair[1].kind == SAME]
    assert {(claim.study, *which.scenarios) for claim, which in same} == {
        ("shared-classes", "14"),
        ("nih-chexpert", "7"),
        ("methods", "equal classes"),
    }
    assert all(which.better.strategy == which.worse.strategy for _, which in same)

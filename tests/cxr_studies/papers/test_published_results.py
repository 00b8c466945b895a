from collections import Counter
from dataclasses import replace

import pytest

from cxr_studies.papers import published_results as module
from cxr_studies.papers.published_results import AVERAGE, Place, find, of_study, read
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import read_study

ML4H, V1, FEDFBN = module.SOURCES


def lines(**wanted):
    """Published lines with such values."""

    def fits(line):
        return all(getattr(line, k, getattr(line.place, k, None)) == wanted[k] for k in wanted)

    return list(filter(fits, read()))


def place(scenario, method, test, group="all", strategy="fedbn+", model="global"):
    return Place(scenario, Row(method, strategy), model, test, group)


def test_every_table_is_there_with_every_figure():
    assert Counter((line.source, line.table) for line in read()) == {
        (ML4H, "1"): 36, (ML4H, "2"): 29, (ML4H, "3"): 26, (ML4H, "4"): 22, (ML4H, "text"): 6,
        (V1, "1"): 56, (V1, "2"): 56, (V1, "3"): 48, (V1, "4a"): 15, (V1, "4b"): 12,
        (FEDFBN, "1"): 12, (FEDFBN, "2a"): 6, (FEDFBN, "2b"): 22, (FEDFBN, "3"): 21,
        (FEDFBN, "4a"): 21, (FEDFBN, "4b"): 18,
    }  # fmt: skip


@pytest.mark.parametrize(("source", "of", "figures"), [
    (ML4H, place("20", "surgical", "mimic"), (20, 0.71, 0.10)),
    (ML4H, place("7", "individual", "chexpert", "chexpert", "fedavg", "nih"), (7, 0.70, 0.07)),
    (ML4H, place("20", "personalised", "mimic", "nih", strategy="fedbn", model="local"),
     (14, 0.70, 0.09)),
    (ML4H, place("20", "vanilla", "nih", "unique"), (7, 0.60, 0.06)),
    (V1, place("10", "surgical", "nih"), (14, 0.79, 0.78, 0.80, 0.16)),
    (V1, place("14", "surgical", "mimic", "chexpert"), (7, 0.74, 0.74, 0.74, 0.37)),
    (V1, place("1/10", "partial_loss", "mimic", "chexpert"), (7, 0.61, 0.61, 0.61, 0.38)),
    (FEDFBN, place("iid partial", "surgical", "nih", "nih-1", "fedbn", "local"),
     (11, 0.81, 0.80, 0.82, 0.14)),
    (FEDFBN, place("non-iid partial", "individual", "mimic", "chexpert", "", "chexpert"),
     (13, 0.72, 0.72, 0.72, 0.27)),
])  # fmt: skip
def test_figures_are_the_papers(source, of, figures):
    [line] = lines(source=source, place=of)
    found = (line.classes, line.auroc, line.sd, line.low, line.high, line.bce)
    assert tuple(value for value in found if value is not None) == figures


@pytest.mark.parametrize(("source", "of", "mark", "p"), [
    (ML4H, place("7", "individual", "nih", "nih", "fedavg", "nih"), "ns", ""),
    (ML4H, place("20", "centralised", "nih", "nih", "fedavg"), "**", ""),
    (V1, place("14", "partial_loss", "nih"), "", "0.95"),
    (V1, place("1/10", "centralised", "nih", strategy=""), "", "0.002"),
    (FEDFBN, place("iid complete", "surgical", "nih", "nih", "fedavg"), "", ""),
])  # fmt: skip
def test_marks_and_p_values_are_the_papers(source, of, mark, p):
    [line] = lines(source=source, place=of)
    assert (line.mark, line.p) == (mark, p)


def test_what_the_papers_test_has_a_mark_or_a_p_value():
    """Table 4 (b) of version 1 has no p of what it does not measure; FedFBN's have none at all."""
    ours = Row("surgical", "fedbn+")
    for line in read():
        tested = line.table != "text" and line.source != FEDFBN and line.place.row != ours
        assert bool(line.mark) == (tested and line.source == ML4H)
        assert bool(line.p) == (tested and line.source == V1)


def test_two_sites_with_half_of_the_data_each_are_the_two_sites_of_the_other_ablation():
    def figures(**of):
        found = lines(source=V1, **of)
        return {(x.place.row, x.place.test): (x.auroc, x.low, x.high, x.bce) for x in found}

    first = figures(study="clients", scenario="2")
    assert len(first) == 8 and first == figures(study="data-size", scenario="1/2")


def test_all_classes_of_ml4h_are_the_mean_of_shared_and_unique_ones():
    for line in lines(source=ML4H, table="3", group="shared"):
        whole = find(lines(source=ML4H, table="2"), replace(line.place, group=line.place.test))
        rest = find(lines(source=ML4H, table="3"), replace(line.place, group="unique"))
        if whole and rest:
            assert whole.classes == line.classes + rest.classes
            weighed = line.classes * line.auroc + rest.classes * rest.auroc
            assert weighed / whole.classes == pytest.approx(whole.auroc, abs=0.01)


def test_a_citation_says_where_a_line_stands_and_no_source_says_two_things_of_one_place():
    places = Counter((line.source, line.study, line.place) for line in read())
    assert max(places.values()) == 1
    assert lines(table="4a")[0].citation == "arXiv:2301.06683 v1, Table 4a"
    assert lines(table="text")[0].citation == "ML4H 2024, text"


def test_a_study_has_all_published_of_it_unless_its_scenarios_are_changed():
    study = read_study("clients")
    found = of_study(study)
    assert set(found) == set(lines(study="clients"))
    assert any(line.place.scenario == AVERAGE for line in found)
    assert len({line.source for line in of_study(read_study("nih-chexpert"))}) == 2
    assert of_study(study.model_copy(update={"name": "mine"})) == ()
    # A changed scenario has nothing, and then the average neither.
    first, *others = study.scenarios
    names = {scenario.name for scenario in others}
    changed = (first.model_copy(update={"shared": 3}), *others)
    assert module.as_shipped(study.model_copy(update={"scenarios": changed})) == names
    for scenarios in (changed, tuple(others)):
        left = of_study(study.model_copy(update={"scenarios": scenarios}))
        assert {line.place.scenario for line in left} == names


def test_a_line_is_found_by_its_place_without_a_strategy_for_every_strategy():
    found = of_study(read_study("clients"))
    for strategy in ("fedavg", "fedbn+"):
        assert find(found, place("2", "complete", "nih", strategy=strategy)).auroc == 0.81
    single = place("2", "surgical", "nih")
    assert find(found, single)
    for other in ("scenario", "model", "test", "group"):
        assert find(lines(place=single), replace(single, **{other: "another"})) is None
    assert find(found, place("2", "surgical", "nih", strategy="fedavg")) is None
    twice = place("20", "surgical", "chexpert", "chexpert")  # of two sources the later paper counts
    assert find(read(), twice).source == ML4H
    assert find(lines(source=V1), twice).auroc == 0.75

import dataclasses

import pytest

import study_runs
from cxr_studies.papers.published_data import PUBLISHED
from cxr_studies.papers.published_results import Place, of_study, read
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import read_study
from cxr_studies.report.tables.latex import notes
from cxr_studies.report.tables.layouts import PAPERS
from cxr_studies.report.tables.tables import tables
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, SHARED, UNION_CLASSES
from study_runs import LACKS, scored
from study_tables import SURGICAL

LABELS = [1.0, 1.0, 0.0, 0.0]
REACHED = {1.0: [0.9, 0.8, 0.2, 0.1], 0.75: [0.9, 0.3, 0.4, 0.1], 0.0: [0.1, 0.2, 0.8, 0.9]}
DASH = "\N{EN DASH}"
NONE = (DASH, None)
CLIENTS = read_study("clients")


@pytest.fixture
def built(study):
    """Tables of runs, each: row, scenario, sites, and model -> AUROC of its classes everywhere."""

    def built(name, tests, *runs, **more):
        labels = {test: dict.fromkeys(names, LABELS) for test, names in tests.items()}
        labelled = {test: study_runs.table(of) for test, of in labels.items()}
        for row, scenario, sites, models in runs:
            predicted = {
                model: {name: REACHED[auroc] for name, auroc in reached.items()}
                for model, reached in models.items()
            }
            of_row = (row.method, row.strategy)
            study.add(predicted, labelled, *of_row, scenario=scenario, sites=sites)
        return tables(study.gathered(name), "phantom", **{"data_use": None, **more})

    return built


def of(classes, auroc=1.0):
    return dict.fromkeys(classes, auroc)


def headings(table):
    return [column.heading for column in table.columns]


def shown(table):
    """Heading and strategy of each line -> mean and published value of each cell."""
    return {
        (line.heading, line.row.strategy): [(c.shown.split(" ")[0], c.theirs) for c in line.cells]
        for line in table.lines
    }


def changed(study, **changes):
    """A study whose first scenario is another one."""
    first, *others = study.scenarios
    scenarios = (first.model_copy(update=changes), *others)
    return study.model_copy(update={"scenarios": scenarios})


def test_nih_chexpert_has_the_papers_tables_with_finished_runs_and_their_groups(built):
    sites = {"nih": NIH_CLASSES, "chexpert": CHEXPERT_CLASSES}
    models = {"nih": of(NIH_CLASSES, 0.75), "chexpert": of(CHEXPERT_CLASSES)}
    unique = {name: 0.0 for name in UNION_CLASSES if name not in SHARED}
    rows = (Row("individual", "fedavg"), *(Row("personalised", s) for s in ("fedbn", "fedbn+")))
    runs = [(row, "20", sites, models) for row in rows]
    runs.append((Row("vanilla", "fedbn+"), "20", sites, {"global": of(UNION_CLASSES) | unique}))
    found = built(read_study("nih-chexpert"), {**sites, "mimic": UNION_CLASSES}, *runs)
    names = ["table-2", "table-3", "table-4", "table-4a", "table-4b"]
    assert [table.name for table in found] == names
    every, of_groups, mimic, *_ = found
    for table in found:
        source = "ml4h2024" if table in found[:3] else "arxiv2301.06683v1"
        assert {cell.published.source for cell in table.cells if cell.published} == {source}
    assert headings(every) == ["NIH, own classes", "CheXpert, own classes", "MIMIC"]
    assert shown(every) == {
        ("Individual, NIH", "fedavg"): [("0.750", 0.82), NONE, NONE],
        ("Individual, CheXpert", "fedavg"): [NONE, ("1.000", 0.74), NONE],
        ("Personalised FL", "fedbn"): [("0.750", 0.81), ("1.000", 0.74), NONE],
        ("Personalised FL", "fedbn+"): [("0.750", 0.81), ("1.000", 0.73), NONE],
        ("Vanilla FL", "fedbn+"): [("0.500", 0.71), ("0.538", 0.68), ("0.350", 0.66)],
    }
    kinds = ("shared classes", "unique classes")
    assert headings(of_groups) == [f"{of}, {kind}" for of in ("NIH", "CheXpert") for kind in kinds]
    groups = shown(of_groups)
    alone, vanilla = groups["Individual, NIH", "fedavg"], groups["Vanilla FL", "fedbn+"]
    assert alone == [("0.750", 0.84), ("0.750", 0.80), ("0.750", 0.70), NONE]
    assert vanilla == [("1.000", 0.82), ("0.000", 0.60), ("1.000", 0.73), ("0.000", 0.62)]
    # Table 3 has no federation that trains batch norm.
    assert {s for heading, s in groups if heading == "Personalised FL"} == {"fedbn+"}
    assert shown(mimic)["Personalised FL", "fedbn"] == [("0.750", 0.70), ("1.000", 0.67)]


def test_fedfbn_has_bce_next_to_auroc_and_measures_the_classes_of_each_site(built):
    sites = {"nih-1": ["Edema", "Mass"], "nih-2": ["Edema", "Hernia"]}
    union = {"Edema": 1.0, "Mass": 0.75, "Hernia": 0.0}
    local = {site: {name: union[name] for name in names} for site, names in sites.items()}
    found = built(
        read_study("fedfbn"),
        {"nih": list(union)},
        (SURGICAL, "iid partial", sites, {"global": union}),
        (Row("surgical", "fedbn"), "iid partial", sites, local),
        (SURGICAL, "iid complete", dict.fromkeys(sites, tuple(union)), {"global": union}),
    )
    assert [table.name for table in found] == ["table-1", "table-2a", "table-2b"]
    single = found[-1]
    spans = {"NIH, classes of nih-1": 2, "NIH, classes of nih-2": 2, "NIH, own classes": 2}
    assert single.spans == tuple(spans.items())
    assert headings(single) == ["BCE", "AUROC"] * 3
    lines = {strategy: cells[1::2] for (_, strategy), cells in shown(single).items()}
    aurocs = {strategy: [mean for mean, _ in cells] for strategy, cells in lines.items()}
    assert aurocs == {"fedbn": ["0.875", "0.500", DASH], "fedbn+": ["0.875", "0.500", "0.583"]}
    cells = single.lines[-1].cells
    assert [cell.theirs for cell in cells] == [0.13, 0.82, 0.17, 0.85, 0.15, 0.82]
    assert cells[1].difference is None  # 2 classes are not 11


@pytest.fixture
def ablation(built):
    """Tables of surgical aggregation; scenario -> AUROC."""

    def ablation(study, scenarios, **more):
        sites = {"nih-1": NIH_CLASSES, "nih-2": NIH_CLASSES}
        runs = [
            (SURGICAL, name, sites, {"global": of(NIH_CLASSES, auroc)})
            for name, auroc in scenarios.items()
        ]
        return built(study, {"nih": NIH_CLASSES, "mimic": NIH_CLASSES}, *runs, **more)

    return ablation


def test_scenarios_of_an_ablation_are_columns_and_the_average_is_over_them(ablation):
    p_values = {Place("4", SURGICAL, "global", "nih", "all"): 0.04}
    nih, *mimic = ablation(CLIENTS, {"2": 1.0, "4": 0.75}, p_values=p_values)
    assert (nih.name, nih.title, nih.data) == ("nih-all", "Number of sites: NIH", "phantom")
    assert nih.spans == (("sites", 2), ("", 1))
    assert headings(nih) == ["2", "4", "average of 2"]
    assert [(cell.shown, cell.theirs, cell.significance_mark) for cell in nih.cells] == [
        ("1.000 ± 0.000", 0.82, ""), ("0.750 ± 0.000", 0.81, "*"), ("0.875 ± 0.177", None, ""),
    ]  # fmt: skip
    # MIMIC is measured with the classes of each paper.
    assert [(table.name, [cell.theirs for cell in table.cells]) for table in mimic] == [
        ("mimic-all", [None, None, None]), ("mimic-chexpert", [0.74, 0.73, None]),
    ]  # fmt: skip
    assert mimic[1].cells[0].ours.classes == 7


VERSION1, ML4H = PUBLISHED["arxiv2301.06683v1"], PUBLISHED["ml4h2024"]


@pytest.mark.parametrize(("had", "compared", "output"), [
    (VERSION1, ["nih-all", "mimic-chexpert"], {}),
    (ML4H, ["nih-all"], {"mimic-chexpert": "MIMIC is not that of arXiv:2301.06683 v1, so no "
     "difference: here 243,324 frontal images, 20 classes of cxr-lt, uncertain zeros, blank "
     "negative; there 377,110 images of all views, 13 classes of mimic,"}),
    ({**VERSION1, "nih": dataclasses.replace(VERSION1["nih"], images=5)}, [],
     dict.fromkeys(["nih-all", "mimic-chexpert"], "here 5 frontal images, 14 classes of nih")),
    (None, [], dict.fromkeys(["nih-all", "mimic-chexpert"], "Our results are on drawings")),
])  # fmt: skip
def test_what_is_published_of_other_data_has_no_difference(ablation, had, compared, output):
    found = {table.name: table for table in ablation(CLIENTS, {"2": 1.0}, data_use=had)}
    cells = {name: table.cells[0] for name, table in found.items() if table.cells[0].published}
    assert {name: cell.theirs for name, cell in cells.items()} == {
        "nih-all": 0.82, "mimic-chexpert": 0.74,
    }  # fmt: skip
    assert [name for name, cell in cells.items() if cell.difference is not None] == compared
    for name in cells:
        of_data = [note for note in notes(found[name]) if "here " in note or "drawings" in note]
        assert len(of_data) == (name in output) and all(output[name] in note for note in of_data)


def test_with_all_scenarios_the_average_has_its_published_one(ablation):
    names = ["2", "3", "4", "5", "6", "8", "10"]
    nih, *_ = ablation(CLIENTS, of(names))
    assert headings(nih) == [*names, "average of 7"]
    assert (nih.cells[-1].theirs, nih.cells[-1].published.sd) == (0.80, 0.01)


def test_a_study_of_ones_own_has_a_table_for_each_test_set(ablation):
    found = ablation(CLIENTS.model_copy(update={"name": "mine"}), {"2": 1.0})
    assert [(each.name, headings(each)) for each in found] == [
        ("nih-all", ["2"]), ("mimic-all", ["2"]),
    ]  # fmt: skip
    assert not any(cell.published for table in found for cell in table.cells)
    first, *_ = ablation(changed(read_study("nih-chexpert"), sites=("nih", "mimic")), {"7": 1.0})
    assert (first.name, first.cells[0].published) == ("nih-all", None)


def test_over_scenarios_that_are_not_alike_there_is_no_average(ablation):
    nih, *_ = ablation(changed(CLIENTS, cut="chexpert"), {"2": 1.0, "4": 0.75})
    assert headings(nih) == ["2", "4"]


def whole(study):
    """Results of a shipped study with every run of one seed of a row with published figures."""
    printed_rows = {line.place.row for line in of_study(study)}
    classes = {"nih": NIH_CLASSES, "chexpert": CHEXPERT_CLASSES, "mimic": UNION_CLASSES}
    reached = {}
    for scenario in study.scenarios:
        sites = {name: classes[name] for name in ("nih", "chexpert")}
        if scenario.cut:
            sites = {"nih-1": NIH_CLASSES[:11], "nih-2": NIH_CLASSES[7:]}
        if scenario.shared == len(NIH_CLASSES) or scenario.classes == "shared":
            sites = dict.fromkeys(sites, NIH_CLASSES if scenario.cut else SHARED)
        union = set().union(*sites.values())
        for row in study.rows_of(scenario):
            alike = {row, *([Row(row.method, "")] if row.strategy == "fedavg" else [])}
            if not alike & printed_rows:
                continue
            models = {"global": union}
            if row.method in ("individual", "personalised") or row.strategy == "fedbn":
                models = sites | ({"server": union} if row.method == "surgical" else {})
            run = study_runs.run(row.method, row.strategy, scenario=scenario.name, sites=sites)
            reached[run] = {
                (model, test): {n: 0.7 if n in has else LACKS for n in classes[test] if n in union}
                for model, has in models.items()
                for test in study.tests
            }
    return scored(reached, study=study.name)


@pytest.mark.parametrize("name", sorted({line.study for line in read()}))
def test_every_published_figure_is_shown_with_one_of_ours(name):
    study = read_study(name)
    made = tables(whole(study), "phantom", data_use=None)
    cells = [cell for table in made for cell in table.cells]
    shown = {cell.published: cell.metric for cell in cells if cell.ours.value is not None}
    published = [line for line in read() if line.study == name]
    unread = [f"{line.citation}: {line.place}" for line in published if line not in shown]
    assert not unread
    bce = {cell.published for cell in cells if cell.metric == "bce"}
    assert bce.issuperset(line for line in shown if line and line.bce and name in PAPERS)


@pytest.mark.parametrize("name", PAPERS)
def test_the_papers_tables_are_of_all_scenarios_and_have_names_of_their_own(name):
    study, layouts = read_study(name), PAPERS[name]
    scenarios = {scenario.name for scenario in study.scenarios}
    assert {column.scenarios[0] for each in layouts for column in each.columns} == scenarios
    assert len({layout.name for layout in layouts}) == len(layouts)


def test_the_servers_model_has_a_line_below_the_sites_own(built):
    sites = {"nih-1": ["Edema", "Mass"], "nih-2": ["Edema", "Hernia"]}
    models = {site: of(names) for site, names in sites.items()}
    models["server"] = of(["Edema", "Mass", "Hernia"], 0.75)
    run = (Row("surgical", "fedbn"), "iid complete", sites, models)
    single, *_ = built(read_study("fedfbn"), {"nih": ["Edema", "Mass", "Hernia"]}, run)
    assert shown(single) == {
        ("Surgical aggregation", "fedbn"): [(DASH, 0.15), (DASH, 0.81)],
        ("Surgical aggregation, server's model", "fedbn"): [("0.481", 0.18), ("0.750", 0.66)],
    }

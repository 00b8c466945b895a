import pytest

import study_runs
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, SHARED, UNION_CLASSES
from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.tables import tables
from cxr_study.studies.analysis.study_results import gather
from cxr_study.studies.papers.published_results import Place
from cxr_study.studies.plan.study_file import read_study

LABELS = [1.0, 1.0, 0.0, 0.0]
REACHED = {1.0: [0.9, 0.8, 0.2, 0.1], 0.75: [0.9, 0.3, 0.4, 0.1], 0.0: [0.1, 0.2, 0.8, 0.9]}
SURGICAL = Row("surgical", "fedbn+")
DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
NONE = (DASH, None, "")


def finish(folder, row, scenario, sites, tests, models):
    """A finished run; models: name -> AUROC of each of its classes on all test sets."""
    run = study_runs.run(row.method, row.strategy, 0, scenario, sites)
    labelled = {
        test: study_runs.table({name: LABELS for name in names}) for test, names in tests.items()
    }
    predicted = {
        (model, test): {name: REACHED[auroc] for name, auroc in reached.items()}
        for model, reached in models.items()
        for test in tests
    }
    study_runs.finish(run, folder, labelled, predicted)
    return run


def of(classes, auroc=1.0):
    return dict.fromkeys(classes, auroc)


def shown(table):
    """Heading and strategy of each line -> mean, published value and difference of each cell."""
    return {
        (line.heading, line.row.strategy): [
            (cell.shown.split(" ")[0], cell.theirs, cell.difference_shown) for cell in line.cells
        ]
        for line in table.lines
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Tables of NIH and CheXpert, of a few rows with all classes; name -> table."""
    folder = tmp_path_factory.mktemp("runs")
    sites = {"nih": NIH_CLASSES, "chexpert": CHEXPERT_CLASSES}
    tests = {**sites, "mimic": UNION_CLASSES}
    local = {"nih": of(NIH_CLASSES, 0.75), "chexpert": of(CHEXPERT_CLASSES)}
    unique = {name: 0.0 for name in UNION_CLASSES if name not in SHARED}
    runs = [
        finish(folder, row, "20", sites, tests, models)
        for row, models in (
            (Row("individual", "fedavg"), local),
            (Row("personalised", "fedbn"), local),
            (Row("personalised", "fedbn+"), local),
            (Row("vanilla", "fedbn+"), {"global": of(UNION_CLASSES) | unique}),
        )
    ]
    results = gather(read_study("nih-chexpert"), runs, folder)
    return {table.name: table for table in tables(results, "phantom")}


class TestNihChexpert:
    def test_tables_are_those_of_the_paper_that_have_finished_runs(self, made):
        assert list(made) == ["table-2", "table-3", "table-4"]
        headings = [column.heading for column in made["table-2"].columns]
        assert headings == ["NIH", "CheXpert", "MIMIC"]
        local = [("0.750", 0.81, f"{MINUS}0.06"), ("1.000", 0.74, "+0.26"), NONE]
        assert shown(made["table-2"]) == {
            ("Individual, NIH", "fedavg"): [("0.750", 0.82, f"{MINUS}0.07"), NONE, NONE],
            ("Individual, CheXpert", "fedavg"): [NONE, ("1.000", 0.74, "+0.26"), NONE],
            ("Personalised FL", "fedbn"): local,
            ("Personalised FL", "fedbn+"): [local[0], ("1.000", 0.73, "+0.27"), NONE],
            ("Vanilla FL", "fedbn+"): [
                ("0.500", 0.71, f"{MINUS}0.21"), ("0.538", 0.68, f"{MINUS}0.14"),
                ("0.350", 0.66, f"{MINUS}0.31"),
            ],
        }  # fmt: skip

    def test_groups_of_classes_are_measured_on_their_test_sets(self, made):
        assert [column.heading for column in made["table-3"].columns] == [
            "NIH, shared classes", "NIH, unique classes",
            "CheXpert, shared classes", "CheXpert, unique classes",
        ]  # fmt: skip
        groups, mimic = shown(made["table-3"]), shown(made["table-4"])
        assert groups["Individual, NIH", "fedavg"] == [
            ("0.750", 0.84, f"{MINUS}0.09"), ("0.750", 0.80, f"{MINUS}0.05"),
            ("0.750", 0.70, "+0.05"), NONE,
        ]  # fmt: skip
        assert groups["Vanilla FL", "fedbn+"] == [
            ("1.000", 0.82, "+0.18"), ("0.000", 0.60, f"{MINUS}0.60"),
            ("1.000", 0.73, "+0.27"), ("0.000", 0.62, f"{MINUS}0.62"),
        ]  # fmt: skip
        personalised = [("0.750", 0.70, "+0.05"), ("1.000", 0.67, "+0.33")]
        assert mimic["Personalised FL", "fedbn"] == personalised
        # Table 3 has no federation that trains batch norm.
        assert {s for heading, s in groups if heading == "Personalised FL"} == {"fedbn+"}

    def test_with_other_scenarios_it_is_a_study_like_any_other(self, tmp_path):
        study = read_study("nih-chexpert")
        scenarios = (
            study.scenarios[0].model_copy(update={"sites": ("nih", "mimic")}),
            study.scenarios[1],
        )
        sites, tests = {"nih": ["Edema"], "mimic": ["Edema"]}, {"nih": ["Edema"]}
        run = finish(tmp_path, SURGICAL, "7", sites, tests, {"global": {"Edema": 1.0}})
        first, *_ = tables(
            gather(study.model_copy(update={"scenarios": scenarios}), [run], tmp_path), "mine"
        )
        assert (first.name, first.cells[0].published) == ("nih-all", None)


def test_fedfbn_has_bce_beside_auroc_and_measures_the_classes_of_each_site(tmp_path):
    sites = {"nih-1": ["Edema", "Mass"], "nih-2": ["Edema", "Hernia"]}
    union = {"Edema": 1.0, "Mass": 0.75, "Hernia": 0.0}
    local = {site: {name: union[name] for name in names} for site, names in sites.items()}
    tests = {"nih": list(union)}
    runs = [
        finish(tmp_path, row, "iid partial", sites, tests, models)
        for row, models in ((SURGICAL, {"global": union}), (Row("surgical", "fedbn"), local))
    ]
    alike = dict.fromkeys(sites, tuple(union))
    runs.append(finish(tmp_path, SURGICAL, "iid complete", alike, tests, {"global": union}))
    found = tables(gather(read_study("fedfbn"), runs, tmp_path), "phantom")
    assert [table.name for table in found] == ["table-1", "table-2a", "table-2b"]
    single = found[-1]
    spans = {"NIH, classes of nih-1": 2, "NIH, classes of nih-2": 2, "NIH": 2}
    assert single.spans == tuple(spans.items())
    assert [column.heading for column in single.columns] == ["BCE", "AUROC"] * 3
    aurocs = {
        strategy: [mean for mean, *_ in cells[1::2]]
        for (_, strategy), cells in shown(single).items()
    }
    assert aurocs == {"fedbn": ["0.875", "0.500", DASH], "fedbn+": ["0.875", "0.500", "0.583"]}
    cells = single.lines[-1].cells
    assert [cell.theirs for cell in cells] == [0.13, 0.82, 0.17, 0.85, 0.15, 0.82]
    assert cells[1].difference is None  # 2 classes are not 11


class TestAblation:
    @pytest.fixture
    def found(self, tmp_path):
        """Tables of surgical aggregation: scenario -> AUROC; "2" and "4" by default."""

        def found(study, scenarios=(("2", 1.0), ("4", 0.75)), p_values=None):
            sites = {"nih-1": NIH_CLASSES, "nih-2": NIH_CLASSES}
            tests = {"nih": NIH_CLASSES, "mimic": NIH_CLASSES}
            runs = [
                finish(tmp_path, SURGICAL, name, sites, tests, {"global": of(NIH_CLASSES, auroc)})
                for name, auroc in scenarios
            ]
            return tables(gather(study, runs, tmp_path), "phantom", p_values)

        return found

    def test_scenarios_are_columns_and_the_average_is_over_them(self, found):
        p_values = {Place("4", SURGICAL, "global", "nih", "all"): 0.04}
        nih, *mimic = found(read_study("clients"), p_values=p_values)
        assert (nih.name, nih.title, nih.data) == ("nih-all", "Number of sites: NIH", "phantom")
        assert nih.spans == (("sites", 2), ("", 1))
        assert [column.heading for column in nih.columns] == ["2", "4", "average of 2"]
        assert [(cell.shown, cell.theirs, cell.mark) for cell in nih.cells] == [
            ("1.000 ± 0.000", 0.82, ""), ("0.750 ± 0.000", 0.81, "*"), ("0.875 ± 0.177", None, ""),
        ]  # fmt: skip
        # MIMIC is measured with the classes of each paper.
        assert [(table.name, [cell.theirs for cell in table.cells]) for table in mimic] == [
            ("mimic-all", [None, None, None]), ("mimic-chexpert", [0.74, 0.73, None]),
        ]  # fmt: skip
        assert mimic[1].cells[0].ours.classes == 7

    def test_with_all_scenarios_the_average_has_its_published_one(self, found):
        names = ["2", "3", "4", "5", "6", "8", "10"]
        nih, *_ = found(read_study("clients"), [(name, 1.0) for name in names])
        assert [c.heading for c in nih.columns] == [*names, "average of 7"]
        assert (nih.cells[-1].theirs, nih.cells[-1].published.sd) == (0.80, 0.01)

    def test_a_study_of_ones_own_has_a_table_for_each_test_set(self, found):
        made = found(
            read_study("clients").model_copy(update={"name": "mine", "title": "Mine"}), [("2", 1.0)]
        )
        every = [(table.name, table.title, len(table.columns)) for table in made]
        assert every == [("nih-all", "Mine: NIH", 1), ("mimic-all", "Mine: MIMIC", 1)]
        assert not any(cell.published for table in made for cell in table.cells)

    def test_over_scenarios_that_are_not_alike_there_is_no_average(self, found):
        study = read_study("clients")
        scenarios = (
            study.scenarios[0].model_copy(update={"cut": "chexpert"}),
            *study.scenarios[1:],
        )
        nih, *_ = found(study.model_copy(update={"scenarios": scenarios}))
        assert [column.heading for column in nih.columns] == ["2", "4"]

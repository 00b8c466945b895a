import pytest

import study_runs
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, SHARED, UNION_CLASSES
from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.tables import tables
from cxr_study.studies.analysis.study_results import gather
from cxr_study.studies.papers.published_results import Place
from cxr_study.studies.plan.study_file import read_study

LABELS = [1.0, 1.0, 0.0, 0.0]
GOOD, FAIR, POOR = [0.9, 0.8, 0.2, 0.1], [0.9, 0.3, 0.4, 0.1], [0.1, 0.2, 0.8, 0.9]
REACHED = {1.0: GOOD, 0.75: FAIR, 0.0: POOR}
SURGICAL = Row("surgical", "fedbn+")


def finish(folder, row, scenario, sites, tests, models, seed=0):
    """A finished run; models: name -> AUROC of each of its classes on all test sets."""
    run = study_runs.run(row.method, row.strategy, seed, scenario, sites)
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


@pytest.fixture(scope="module")
def nih_chexpert(tmp_path_factory):
    """Tables of NIH and CheXpert, of a few rows with all classes; name -> table."""
    folder = tmp_path_factory.mktemp("runs")
    sites = {"nih": NIH_CLASSES, "chexpert": CHEXPERT_CLASSES}
    tests = {**sites, "mimic": UNION_CLASSES}
    own = {"nih": of(NIH_CLASSES, 0.75), "chexpert": of(CHEXPERT_CLASSES)}
    unique = {name: 0.0 for name in UNION_CLASSES if name not in SHARED}
    runs = [
        finish(folder, row, "20", sites, tests, models)
        for row, models in (
            (Row("individual", "fedavg"), own),
            (Row("individual", "fedbn+"), own),
            (Row("personalised", "fedbn"), own),
            (Row("personalised", "fedbn+"), own),
            (Row("vanilla", "fedbn+"), {"global": of(UNION_CLASSES) | unique}),
            (SURGICAL, {"global": of(UNION_CLASSES, 0.75)}),
        )
    ]
    results = gather(read_study("nih-chexpert"), runs, folder)
    return {table.name: table for table in tables(results, "phantom")}


def shown(table):
    """Heading and strategy of each line -> mean, published value and difference of each cell."""
    return {
        (line.heading, line.row.strategy): [
            (cell.shown.split(" ")[0], cell.theirs, cell.difference_shown) for cell in line.cells
        ]
        for line in table.lines
    }


DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


class TestNihChexpert:
    def test_has_the_tables_of_the_paper_that_have_finished_runs(self, nih_chexpert):
        assert list(nih_chexpert) == ["table-2", "table-3", "table-4"]

    def test_all_classes_on_three_test_sets(self, nih_chexpert):
        table = nih_chexpert["table-2"]
        assert [column.heading for column in table.columns] == ["NIH", "CheXpert", "MIMIC"]
        own = [("0.750", 0.81, f"{MINUS}0.06"), ("1.000", 0.74, "+0.26"), (DASH, None, "")]
        assert shown(table) == {
            ("Individual, NIH", "fedavg"): [
                ("0.750", 0.82, f"{MINUS}0.07"), (DASH, None, ""), (DASH, None, ""),
            ],
            ("Individual, CheXpert", "fedavg"): [
                (DASH, None, ""), ("1.000", 0.74, "+0.26"), (DASH, None, ""),
            ],
            ("Individual, NIH", "fedbn+"): [
                ("0.750", None, ""), (DASH, None, ""), (DASH, None, ""),
            ],
            ("Individual, CheXpert", "fedbn+"): [
                (DASH, None, ""), ("1.000", None, ""), (DASH, None, ""),
            ],
            ("Personalised FL", "fedbn"): own,
            ("Personalised FL", "fedbn+"): [own[0], ("1.000", 0.73, "+0.27"), own[2]],
            ("Vanilla FL", "fedbn+"): [
                ("0.500", 0.71, f"{MINUS}0.21"), ("0.538", 0.68, f"{MINUS}0.14"),
                ("0.350", 0.66, f"{MINUS}0.31"),
            ],
            ("Surgical aggregation", "fedbn+"): [
                ("0.750", 0.81, f"{MINUS}0.06"), ("0.750", 0.76, f"{MINUS}0.01"),
                ("0.750", 0.71, "+0.04"),
            ],
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("table", "line", "cells"),
        [
            (
                "table-3", ("Individual, NIH", "fedavg"),
                [
                    ("0.750", 0.84, f"{MINUS}0.09"), ("0.750", 0.80, f"{MINUS}0.05"),
                    ("0.750", 0.70, "+0.05"), (DASH, None, ""),
                ],
            ),
            (
                "table-3", ("Vanilla FL", "fedbn+"),
                [
                    ("1.000", 0.82, "+0.18"), ("0.000", 0.60, f"{MINUS}0.60"),
                    ("1.000", 0.73, "+0.27"), ("0.000", 0.62, f"{MINUS}0.62"),
                ],
            ),
            (
                "table-4", ("Personalised FL", "fedbn"),
                [("0.750", 0.70, "+0.05"), ("1.000", 0.67, "+0.33")],
            ),
            (
                "table-4", ("Individual, CheXpert", "fedavg"),
                [(DASH, None, ""), ("1.000", 0.67, "+0.33")],
            ),
        ],
    )  # fmt: skip
    def test_groups_of_classes_on_their_test_sets(self, nih_chexpert, table, line, cells):
        assert shown(nih_chexpert[table])[line] == cells

    def test_where_batch_norm_is_frozen_federations_with_another_are_left_out(self, nih_chexpert):
        assert ("Personalised FL", "fedbn") not in shown(nih_chexpert["table-3"])

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


class TestFedFbn:
    def test_classes_of_a_site_are_measured_as_such(self, tmp_path):
        first = ["Edema", "Mass"]
        sites = {"nih-1": first, "nih-2": ["Edema", "Hernia"]}
        union = {"Edema": 1.0, "Mass": 0.75, "Hernia": 0.0}
        own = {site: {name: union[name] for name in names} for site, names in sites.items()}
        tests = {"nih": list(union)}
        runs = [
            finish(tmp_path, row, "iid partial", sites, tests, models)
            for row, models in ((SURGICAL, {"global": union}), (Row("surgical", "fedbn"), own))
        ]
        alike = dict.fromkeys(sites, tuple(union))
        runs.append(finish(tmp_path, SURGICAL, "iid complete", alike, tests, {"global": union}))
        found = tables(gather(read_study("fedfbn"), runs, tmp_path), "phantom")
        assert [table.name for table in found] == ["table-1", "table-2a", "table-2b"]
        single = found[-1]
        assert single.spans == (
            ("NIH, classes of nih-1", 2), ("NIH, classes of nih-2", 2), ("NIH", 2),
        )  # fmt: skip
        assert [c.heading for c in single.columns[:2]] == ["BCE", "AUROC"]
        values = {
            line.row.strategy: [
                cell.shown.split(" ")[0] for cell in line.cells if cell.metric == "auroc"
            ]
            for line in single.lines
        }
        assert values == {"fedbn": ["0.875", "0.500", DASH], "fedbn+": ["0.875", "0.500", "0.583"]}
        theirs = [cell.theirs for cell in single.lines[-1].cells]
        assert theirs == [0.13, 0.82, 0.17, 0.85, 0.15, 0.82]
        assert single.lines[-1].cells[1].difference is None  # 2 classes are not 11


class TestAblation:
    @pytest.fixture
    def runs(self, tmp_path):
        """Of surgical aggregation with 2 and 4 sites; both labelled alike."""
        sites = {"nih-1": NIH_CLASSES, "nih-2": NIH_CLASSES}
        tests = {"nih": NIH_CLASSES, "mimic": NIH_CLASSES}
        return [
            finish(tmp_path, SURGICAL, scenario, sites, tests, {"global": of(NIH_CLASSES, auroc)})
            for scenario, auroc in (("2", 1.0), ("4", 0.75))
        ]

    def test_scenarios_are_columns_and_the_average_is_over_them(self, runs, tmp_path):
        nih, *_ = tables(gather(read_study("clients"), runs, tmp_path), "phantom")
        assert (nih.name, nih.title) == ("nih-all", "Number of sites: NIH")
        assert nih.spans == (("sites", 2), ("", 1))
        assert [column.heading for column in nih.columns] == ["2", "4", "average of 2"]
        assert [(cell.shown, cell.theirs) for cell in nih.cells] == [
            ("1.000 ± 0.000", 0.82), ("0.750 ± 0.000", 0.81), ("0.875 ± 0.177", None),
        ]  # fmt: skip

    def test_mimic_is_measured_with_the_classes_of_each_paper(self, runs, tmp_path):
        _, *mimic = tables(gather(read_study("clients"), runs, tmp_path), "phantom")
        assert [(table.name, [cell.theirs for cell in table.cells]) for table in mimic] == [
            ("mimic-all", [None, None, None]), ("mimic-chexpert", [0.74, 0.73, None]),
        ]  # fmt: skip
        assert mimic[1].cells[0].ours.classes == 7

    def test_with_all_scenarios_the_average_has_its_published_one(self, runs, tmp_path):
        sites, tests = {"nih-1": NIH_CLASSES, "nih-2": NIH_CLASSES}, {"nih": NIH_CLASSES}
        more = [
            finish(tmp_path, SURGICAL, scenario, sites, tests, {"global": of(NIH_CLASSES)})
            for scenario in ("3", "5", "6", "8", "10")
        ]
        nih, *_ = tables(gather(read_study("clients"), [*runs, *more], tmp_path), "phantom")
        assert [c.heading for c in nih.columns] == [
            "2", "3", "4", "5", "6", "8", "10", "average of 7",
        ]  # fmt: skip
        assert (nih.cells[-1].theirs, nih.cells[-1].published.sd) == (0.80, 0.01)

    def test_a_study_of_ones_own_has_a_table_for_each_test_set(self, runs, tmp_path):
        study = read_study("clients").model_copy(update={"name": "mine", "title": "Mine"})
        found = tables(gather(study, runs[:1], tmp_path), "phantom")
        assert [(table.name, table.title) for table in found] == [
            ("nih-all", "Mine: NIH"), ("mimic-all", "Mine: MIMIC"),
        ]  # fmt: skip
        assert [len(table.columns) for table in found] == [1, 1]
        assert not any(cell.published for table in found for cell in table.cells)

    def test_over_scenarios_that_are_not_alike_there_is_no_average(self, runs, tmp_path):
        study = read_study("clients")
        scenarios = (
            study.scenarios[0].model_copy(update={"cut": "chexpert"}),
            *study.scenarios[1:],
        )
        nih, *_ = tables(
            gather(study.model_copy(update={"scenarios": scenarios}), runs, tmp_path), "phantom"
        )
        assert [column.heading for column in nih.columns] == ["2", "4"]

    def test_p_values_stand_in_the_cells(self, runs, tmp_path):
        results = gather(read_study("clients"), runs, tmp_path)
        nih, *_ = tables(results, "phantom", {Place("4", SURGICAL, "global", "nih", "all"): 0.04})
        assert [cell.mark for cell in nih.cells] == ["", "*", ""]
        assert nih.data == "phantom"

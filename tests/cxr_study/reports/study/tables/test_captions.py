from dataclasses import replace

import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.captions import GROUPS, caption, classes, notes
from cxr_study.reports.study.tables.tables import Column
from cxr_study.studies.analysis.means import GROUPS as GROUPS_OF_MEANS
from cxr_study.studies.papers.published_results import Place
from study_tables import NIH, SURGICAL, mean, published, table

VANILLA = Row("vanilla", "fedbn+")
COMPLETE = Row("complete", "fedbn+")
BOTH = {"rows": (SURGICAL, VANILLA)}
TESTED = table(
    mean(0.8),
    mean(0.7, method="vanilla"),
    p_values={Place("2", VANILLA, "global", "nih", "all"): 0.4},
    **BOTH,
)


class TestCaption:
    def test_says_what_it_is_on_which_data_and_with_how_many_seeds(self):
        lines = [mean(0.8), mean(0.7, seed=1)]
        assert caption(table(*lines, title="Sites", data="phantom, 2000 images")) == (
            "Sites. Mean AUROC ± SD over classes. Ours: phantom, 2000 images, 2 seeds."
        )

    def test_one_seed_is_one_and_different_numbers_are_a_range(self):
        assert "1 seed." in caption(table(mean(0.8)))
        lines = [mean(0.8), mean(0.8, seed=1), mean(0.7, method="vanilla")]
        assert "1 to 2 seeds." in caption(table(*lines, **BOTH))

    def test_cells_without_a_finished_run_count_for_nothing(self):
        columns = (NIH, Column("4", "nih", ("4",)))
        lines = [mean(0.8), mean(0.7, method="vanilla"), mean(0.8, setting="4")]
        assert "phantom, 1 seed." in caption(table(*lines, columns=columns, **BOTH))

    def test_names_every_source_of_what_is_published_once(self):
        columns = (NIH, Column("4", "nih", ("4",)))
        theirs = [published(), published(setting="4")]
        made = table(mean(0.8), mean(0.8, setting="4"), columns=columns, published=theirs)
        assert caption(made).endswith(" Published: ML4H 2024, Table 2.")
        assert "Published" not in caption(table(mean(0.8)))

    def test_names_bce_where_there_is_a_column_of_it(self):
        columns = (NIH, Column("BCE", "nih", ("2",), metric="bce"))
        assert "over classes, and mean BCE." in caption(table(mean(0.8), columns=columns))


def test_every_group_of_classes_has_a_name():
    assert set(GROUPS) == set(GROUPS_OF_MEANS)
    assert classes("nih", "all") == "NIH"
    assert classes("mimic", "chexpert") == "MIMIC, classes of CheXpert"
    assert classes("nih", "nih-1") == "NIH, classes of nih-1"


class TestNotes:
    def test_numbers_of_classes_are_always_told(self):
        columns = (NIH, Column("x", "nih", ("2",), "shared"))
        lines = [mean(0.8), mean(0.9, group="shared", classes=7)]
        assert notes(table(*lines, columns=columns)) == (
            "Number of classes: 14 (NIH) and 7 (NIH, shared classes).",
        )

    def test_numbers_of_classes_that_differ_are_a_range(self):
        made = table(mean(0.8), mean(0.7, method="vanilla", classes=13), **BOTH)
        assert notes(made)[0] == "Number of classes: 13 to 14 (NIH)."

    @pytest.mark.parametrize(
        ("note", "made"),
        [
            ("Bold: best of the column.", table(mean(0.8), mean(0.7, method="vanilla"), **BOTH)),
            (
                "Bold: best of the column, centralised, fully labelled apart.",
                table(
                    mean(0.8),
                    mean(0.7, method="vanilla"),
                    mean(0.9, method="complete"),
                    rows=(SURGICAL, VANILLA, COMPLETE),
                ),
            ),
            (
                "\N{EN DASH}: not defined, for the model lacks a class.",
                table(mean(0.8), mean(None, method="vanilla"), **BOTH),
            ),
            (
                "Average: over the settings, its SD too.",
                table(
                    mean(0.8),
                    mean(0.8, setting="4"),
                    columns=(Column("average", "nih", ("2", "4")),),
                ),
            ),
            (
                "Rows without a global model: each site's own on its own test set; on that of no "
                "site, the mean over the sites whose models have all its classes.",
                table(
                    mean(0.8, model="nih", method="personalised"),
                    rows=(Row("personalised", "fedbn+"),),
                ),
            ),
            (
                "Published without a federation: of one model, whichever batch norm ours has.",
                table(
                    mean(0.8, method="complete"),
                    rows=(COMPLETE,),
                    published=[published(row=Row("complete", ""))],
                ),
            ),
            (
                "No difference: the published mean is over another number of classes.",
                table(mean(0.8), published=[published(classes=13)]),
            ),
            (
                "Against surgical aggregation, by paired t-test or Wilcoxon's signed-rank test "
                "over classes in a setting and over settings in the average, with Holm's "
                "correction: * p < 0.05, ** p < 0.01, *** p < 0.001, ns: not significant.",
                TESTED,
            ),
            (
                "No mark in a column: not tested.",
                table(
                    mean(0.8),
                    mean(0.7, method="vanilla"),
                    mean(0.6, group="nih-1"),
                    columns=(NIH, Column("x", "nih", ("2",), "nih-1")),
                    p_values={Place("2", VANILLA, "global", "nih", "all"): 0.4},
                    **BOTH,
                ),
            ),
            (
                "Published of Surgical aggregation: ML4H 2024 (NIH and 3); arXiv:2301.06683 v1 "
                "(4).",
                table(
                    mean(0.8),
                    mean(0.8, setting="3"),
                    mean(0.8, setting="4"),
                    columns=(NIH, Column("4", "nih", ("4",)), Column("3", "nih", ("3",))),
                    published=[
                        published(),
                        published(setting="3"),
                        replace(published(setting="4"), source="arxiv2301.06683v1"),
                    ],
                ),
            ),
        ],
    )
    def test_a_note_stands_where_it_concerns_the_table(self, note, made):
        assert note in notes(made)
        assert note not in notes(table(mean(0.8), published=[published()]))

    def test_columns_of_bce_have_no_mark_to_miss(self):
        columns = (NIH, Column("BCE", "nih", ("2",), metric="bce"))
        p_values = {Place("2", VANILLA, "global", "nih", "all"): 0.4}
        lines = [mean(0.8), mean(0.7, method="vanilla")]
        made = table(*lines, columns=columns, p_values=p_values, **BOTH)
        assert not any("No mark" in note for note in notes(made) + notes(TESTED))

    def test_where_nothing_is_defined_no_number_of_classes_is_told(self):
        assert not any("Number" in note for note in notes(table(mean(None))))

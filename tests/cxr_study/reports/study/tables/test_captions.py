from dataclasses import replace

import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.captions import caption, notes
from cxr_study.reports.study.tables.layouts import Column
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


BCE = (NIH, Column("BCE", "nih", ("2",), metric="bce"))
TWO = (NIH, Column("4", "nih", ("4",)))


@pytest.mark.parametrize(
    ("said", "made"),
    [
        (
            "Sites. Mean AUROC ± SD over classes. Ours: phantom, 2000 images, 2 seeds.",
            table(mean(0.8), mean(0.7, seed=1), data="phantom, 2000 images"),
        ),
        ("phantom, 1 seed.", table(mean(0.8))),
        (
            "1 to 2 seeds.",
            table(mean(0.8), mean(0.8, seed=1), mean(0.7, method="vanilla"), **BOTH),
        ),
        (  # a cell without a finished run counts for nothing
            "phantom, 1 seed.",
            table(
                mean(0.8), mean(0.7, method="vanilla"), mean(0.8, setting="4"), columns=TWO, **BOTH
            ),
        ),
        (
            "1 seed. Published: ML4H 2024, Table 2.",
            table(
                mean(0.8),
                mean(0.8, setting="4"),
                columns=TWO,
                published=[published(), published(setting="4")],
            ),
        ),
        ("over classes, and mean BCE.", table(mean(0.8), columns=BCE)),
    ],
)
def test_a_caption_says_what_it_is_on_which_data_with_how_many_seeds_and_sources(said, made):
    assert said in caption(made)


class TestNotes:
    @pytest.mark.parametrize(
        ("numbers", "made"),
        [
            (
                "14 (NIH) and 7 (NIH, shared classes)",
                table(
                    mean(0.8),
                    mean(0.9, group="shared", classes=7),
                    columns=(NIH, Column("x", "nih", ("2",), "shared")),
                ),
            ),
            ("13 to 14 (NIH)", table(mean(0.8), mean(0.7, method="vanilla", classes=13), **BOTH)),
        ],
    )
    def test_numbers_of_classes_are_always_told(self, numbers, made):
        assert notes(made)[0] == f"Number of classes: {numbers}."

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
                "\N{EN DASH}: not defined",
                table(mean(0.8), mean(None, method="vanilla"), **BOTH),
            ),
            (
                "Average",
                table(
                    mean(0.8),
                    mean(0.8, setting="4"),
                    columns=(Column("average", "nih", ("2", "4")),),
                ),
            ),
            (
                "Rows without a global model",
                table(
                    mean(0.8, model="nih", method="personalised"),
                    rows=(Row("personalised", "fedbn+"),),
                ),
            ),
            (
                "Published without a federation",
                table(
                    mean(0.8, method="complete"),
                    rows=(COMPLETE,),
                    published=[published(row=Row("complete", ""))],
                ),
            ),
            (
                "No difference",
                table(mean(0.8), published=[published(classes=13)]),
            ),
            (
                "Against surgical aggregation",
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
        assert any(each.startswith(note) for each in notes(made))
        plain = table(mean(0.8), published=[published()])
        assert not any(each.startswith(note) for each in notes(plain))

    def test_columns_of_bce_have_no_mark_to_miss(self):
        p_values = {Place("2", VANILLA, "global", "nih", "all"): 0.4}
        lines = [mean(0.8), mean(0.7, method="vanilla")]
        made = table(*lines, columns=BCE, p_values=p_values, **BOTH)
        assert not any("No mark" in note for note in notes(made) + notes(TESTED))

    def test_where_nothing_is_defined_no_number_of_classes_is_told(self):
        assert not any("Number" in note for note in notes(table(mean(None))))

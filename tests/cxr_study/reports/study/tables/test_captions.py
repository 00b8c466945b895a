from dataclasses import replace

import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.captions import caption, notes
from cxr_study.reports.study.tables.layouts import Column
from cxr_study.studies.papers.published_results import Place
from study_tables import NIH, SURGICAL, mean, published, table

VANILLA, COMPLETE = Row("vanilla", "fedbn+"), Row("complete", "fedbn+")
LOCAL = {"method": "personalised", "model": "nih"}
P_VALUES = {Place("2", VANILLA, "global", "nih", "all"): 0.4}
BCE = (NIH, Column("BCE", "nih", ("2",), metric="bce"))
TWO = (NIH, Column("4", "nih", ("4",)))


def both(*lines, **more):
    """A table of surgical aggregation and vanilla."""
    return table(*lines, mean(0.7, method="vanilla"), rows=(SURGICAL, VANILLA), **more)


@pytest.mark.parametrize(
    ("said", "made"),
    [
        (
            "Sites. Mean AUROC ± SD over classes. Ours: phantom, 2000 images, 2 seeds.",
            table(mean(0.8), mean(0.7, seed=1), data="phantom, 2000 images"),
        ),
        ("1 to 2 seeds.", both(mean(0.8), mean(0.8, seed=1))),
        # A cell without a finished run counts for nothing.
        ("phantom, 1 seed.", both(mean(0.8), mean(0.8, scenario="4"), columns=TWO)),
        (
            "1 seed. Published: ML4H 2024, Table 2.",
            both(
                mean(0.8),
                mean(0.8, scenario="4"),
                columns=TWO,
                published=[published(), published(scenario="4")],
            ),
        ),
        ("over classes, and mean BCE.", table(mean(0.8), columns=BCE)),
    ],
)
def test_a_caption_says_what_it_is_on_which_data_with_how_many_seeds_and_sources(said, made):
    assert said in caption(made)


class TestNotes:
    def test_a_plain_table_has_the_number_of_classes_alone(self):
        assert notes(table(mean(0.8), published=[published()])) == ("Number of classes: 14 (NIH).",)

    def test_of_all_that_there_may_be_to_say_everything_is_said(self):
        columns = (*TWO, Column("x", "nih", ("2",), "shared"), Column("all", "nih", ("2", "4")))
        made = table(
            *(mean(auroc, **of) for auroc, of in (
                (0.8, {}), (0.8, {"scenario": "4"}), (0.9, {"group": "shared", "classes": 7}),
                (0.7, {"method": "vanilla", "classes": 13}), (0.9, {"method": "complete"}),
                (None, {**LOCAL}),
            )),
            columns=columns,
            rows=(SURGICAL, VANILLA, COMPLETE, Row("personalised", "fedbn+")),
            published=[
                published(classes=13),
                replace(published(scenario="4"), source="arxiv2301.06683v1"),
                published(row=Row("complete", "")),
            ],
            p_values=P_VALUES,
        )  # fmt: skip
        found = notes(made)
        assert found[0] == "Number of classes: 13 to 14 (NIH) and 7 (NIH, shared classes)."
        assert found[1] == "Bold: best of the column, centralised, fully labelled apart."
        beginnings = (
            "\N{EN DASH}: not defined", "Average: ", "Rows without a global model: ",
            "Published without a federation: ", "No difference: ",
            "Against surgical aggregation, ", "No mark in a column: ",
        )  # fmt: skip
        assert [note.startswith(b) for note, b in zip(found[2:], beginnings, strict=False)] == (
            [True] * len(beginnings)
        )
        assert found[9:] == (
            "Published of Surgical aggregation: ML4H 2024 (NIH); arXiv:2301.06683 v1 (4).",
        )

    def test_columns_of_bce_have_no_mark_to_miss(self):
        found = notes(both(mean(0.8), columns=BCE, p_values=P_VALUES))
        assert any(note.startswith("Against") for note in found)
        assert not any(note.startswith("No mark") for note in found)

    def test_the_best_is_told_without_a_baseline_of_all_labels_too(self):
        assert "Bold: best of the column." in notes(both(mean(0.8)))

    def test_where_nothing_is_defined_no_number_of_classes_is_told(self):
        assert not any("Number" in note for note in notes(table(mean(None))))

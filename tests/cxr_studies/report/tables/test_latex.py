import re
from dataclasses import replace

import pytest

from cxr_studies.papers.published_results import Place
from cxr_studies.plan.row import Row
from cxr_studies.report.tables.latex import caption, escape, latex, notes
from cxr_studies.report.tables.layouts import Column
from study_tables import NIH, SURGICAL, mean, published, table

VANILLA, COMPLETE = Row("vanilla", "fedbn+"), Row("complete", "fedbn+")
P_VALUES = {Place("2", VANILLA, "global", "nih", "all"): 0.4}
BCE = (NIH, Column("BCE", "nih", ("2",), metric="bce"))
TWO = (NIH, Column("4", "nih", ("4",)))
NASTY = '\\input{x} 50 % of $a_1$ & #2 ~ ^ } <|> "so"\n\n±'


def both(*lines, **more):
    """A table of surgical aggregation and vanilla."""
    return table(*lines, mean(0.7, method="vanilla"), rows=(SURGICAL, VANILLA), **more)


# A cell without a finished run counts for nothing.
PUBLISHED = {"columns": TWO, "published": [published(), published(scenario="4")]}


@pytest.mark.parametrize(("made", "output"), [
    (table(mean(0.8), mean(0.7, seed=1), data="phantom, 2000 images"),
     "Sites. Mean AUROC ± SD over classes. Ours: phantom, 2000 images, 2 seeds."),
    (both(mean(0.8), mean(0.8, seed=1)), "1 to 2 seeds."),
    (both(mean(0.8), mean(0.8, scenario="4"), **PUBLISHED),
     "1 seed. Published: ML4H 2024, Table 2."),
    (table(mean(0.8), columns=BCE), "over classes, and mean BCE."),
])  # fmt: skip
def test_a_caption_says_what_it_is_on_which_data_with_how_many_seeds_and_sources(made, output):
    assert output in caption(made)


def test_notes_stand_only_below_a_table_that_needs_them():
    assert notes(table(mean(0.8), published=[published()])) == ("Number of classes: 14 (NIH).",)
    assert not any("Number" in note for note in notes(table(mean(None))))
    found = notes(both(mean(0.8), columns=BCE, p_values=P_VALUES))
    assert "Bold: best of the column." in found
    assert any(note.startswith("Against") for note in found)
    assert not any(note.startswith("No mark") for note in found)  # BCE has none to miss


def test_a_table_that_needs_all_notes_has_them():
    columns = (*TWO, Column("x", "nih", ("2",), "shared"), Column("all", "nih", ("2", "4")))
    made = table(
        *(mean(auroc, **of) for auroc, of in (
            (0.8, {}), (0.8, {"scenario": "4"}), (0.9, {"group": "shared", "classes": 7}),
            (0.7, {"method": "vanilla", "classes": 13}), (0.9, {"method": "complete"}),
            (None, {"method": "personalised", "model": "nih"}),
            (0.6, {"strategy": "fedbn", "model": "server"}),
            (0.6, {"strategy": "silobn", "model": "server"}),
        )),
        columns=columns,
        rows=(
            SURGICAL, VANILLA, COMPLETE, Row("personalised", "fedbn+"),
            Row("surgical", "fedbn"), Row("surgical", "silobn"),
        ),
        published=[
            published(classes=13, mark="ns"),
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
        "Published marks, ", "Server's model: the", "Server's model of strategy silobn: columns",
        "Published of Surgical aggregation: ML4H 2024 (NIH); arXiv:2301.06683 v1 (4).",
    )  # fmt: skip
    for note, beginning in zip(found[2:], beginnings, strict=True):
        assert note.startswith(beginning)


def test_ours_stands_over_intervals_and_published_values():
    over = [Column(name, "nih", (of,), over="Over") for name, of in (("a", "2"), ("b", "4"))]
    columns = (*over, Column("c", "mimic", ("2",)))
    made = table(
        *(mean(0.8, seed=seed) for seed in (0, 1)), mean(0.7, scenario="4"),
        mean(None, test="mimic"), mean(0.6, method="vanilla"),
        columns=columns, rows=(SURGICAL, VANILLA), 
        published=[published(sd=0.07, mark="ns")],
        p_values={Place("2", VANILLA, "global", "nih", "all"): 0.01},
    )  # fmt: skip
    text = latex(made, "my study%2")
    pm = r"\ensuremath{\pm}"
    assert text[text.index(r"\begin{tabular}") : text.index(r"\end{tabular}")].splitlines() == [
        r"\begin{tabular}{llccc}",
        r"\toprule",
        r"\multicolumn{2}{c}{} & \multicolumn{2}{c}{Over} &  \\",
        r" &  & a & b & c \\",
        r"\midrule",
        rf"Surgical aggregation & fedbn+ & \textbf{{0.800 {pm} 0.100}} & 0.700 {pm} 0.100 & -- \\",
        r"\quad 95 \% interval over seeds &  & 0.800 to 0.800 &  &  \\",
        rf"\quad published [difference] &  & 0.82 {pm} 0.07 ns [\ensuremath{{-}}0.02] &  &  \\",
        rf"Vanilla FL & fedbn+ & 0.600 {pm} 0.100\textsuperscript{{**}} &  &  \\",
        r"\bottomrule",
    ]
    assert r"\label{tab:my-study-2-nih-all}" in text
    assert r"\caption{Sites. Mean AUROC \ensuremath{\pm} SD over classes. Ours: phantom" in text
    assert "Number of classes: 14 (NIH)." in text
    text = latex(table(mean(0.8)), "clients")  # what no cell has is no row
    assert text.count(r"\\") == 2 and " &  & NIH" in text


def test_whatever_people_have_written_is_text():
    column = Column(NASTY, "nih", ("2",), over=NASTY)
    text = latex(table(mean(0.8), columns=(column, NIH), title=NASTY, data=NASTY), "clients")
    assert text.count(escape(NASTY)) == 4
    bare = re.sub(r"\\[\\{}$&#%_]", "", text)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"[$#%^~_]", bare)
    assert "\n\n" not in text


@pytest.mark.parametrize(("text", "written"), [
    ("a\\b{c} ^~", r"a\textbackslash{}b\{c\} \textasciicircum{}\textasciitilde{}"),
    ("1 % $ & # _", r"1 \% \$ \& \# \_"),
    ("p < 0.05 > |", r"p \ensuremath{<} 0.05 \ensuremath{>} \ensuremath{|}"),
    ("p ≤ 0.05", r"p \ensuremath{\leq} 0.05"),
    ("0.8 ± 0.1", r"0.8 \ensuremath{\pm} 0.1"),
    ("\N{MINUS SIGN}1\N{EN DASH}2", r"\ensuremath{-}1--2"),
    ('"a"\n\n b', "''a'' b"),
    (3, "3"),
])  # fmt: skip
def test_escaped_text_is_read_as_it_was(text, written):
    assert escape(text) == written

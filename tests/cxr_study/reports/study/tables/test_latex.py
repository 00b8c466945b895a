import re

import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.latex import escape
from cxr_study.reports.study.tables.latex import latex as written
from cxr_study.reports.study.tables.layouts import Column
from cxr_study.studies.papers.published_results import Place
from study_tables import NIH, SURGICAL, mean, published, table

VANILLA = Row("vanilla", "fedbn+")
NASTY = '\\input{x} 50 % of $a_1$ & #2 ~ ^ } <|> "so"\n\n±'


def latex(table, study="clients"):
    """A table as LaTeX."""
    return written(table, study)


def rows(text):
    """Rows of the tabular, each as its cells."""
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    lines = [line.strip() for line in body.splitlines() if line.rstrip().endswith(r"\\")]
    return [re.split(r"(?<!\\)&", line.removesuffix(r"\\")) for line in lines]


def cells(text):
    """The same without what is not read: braces and blanks."""
    return [[re.sub(r"[{}]", "", cell).strip() for cell in row] for row in rows(text)]


def made(**more):
    """A table of two rows in two columns below one heading, and a third without."""
    columns = (
        Column("a", "nih", ("2",), over="Over"),
        Column("b", "nih", ("4",), over="Over"),
        Column("c", "mimic", ("2",)),
    )
    return table(
        *(mean(0.8, seed=seed) for seed in (0, 1)),
        mean(0.7, scenario="4"),
        mean(None, test="mimic"),
        mean(0.6, method="vanilla"),
        columns=columns,
        rows=(SURGICAL, VANILLA),
        published=[published(sd=0.07)],
        p_values={Place("2", VANILLA, "global", "nih", "all"): 0.001},
        **more,
    )


class TestLatex:
    def test_ours_stands_over_intervals_and_published_values(self):
        pm = r"\ensuremath\pm"
        assert cells(latex(made())) == [
            ["", "", r"\multicolumn2cOver", r"\multicolumn1c"],
            ["", "", "a", "b", "c"],
            [
                "Surgical aggregation",
                "fedbn+",
                rf"\textbf0.800 {pm} 0.100",
                f"0.700 {pm} 0.100",
                "--",
            ],
            [r"\quad 95 \% interval over seeds", "", "0.800 to 0.800", "", ""],
            [r"\quad published [difference]", "", rf"0.82 {pm} 0.07 [\ensuremath-0.02]", "", ""],
            ["Vanilla FL", "fedbn+", rf"0.600 {pm} 0.100\textsuperscript**", "", ""],
        ]

    def test_what_no_cell_has_is_no_row(self):
        assert len(cells(latex(table(mean(0.8))))) == 2
        assert r"\multicolumn" not in latex(table(mean(0.8)))

    def test_a_shared_heading_has_a_rule_below_it(self):
        assert re.findall(r"\\cmidrule\(lr\)\{(.*?)\}", latex(made())) == ["3-4"]

    def test_caption_notes_and_label_are_in_it(self):
        text = latex(made(title="Sites"))
        assert r"\caption{Sites. Mean AUROC \ensuremath{\pm} SD over classes. Ours: phantom" in text
        assert r"\label{tab:clients-nih-all}" in text
        assert "Number of classes: 14 (NIH)." in text

    def test_a_label_is_of_the_study_whatever_its_file_is_called(self):
        assert r"\label{tab:my-study-2-nih-all}" in latex(table(mean(0.8)), "my study%2")

    def test_whatever_people_have_written_is_text(self):
        column = Column(NASTY, "nih", ("2",), over=NASTY)
        text = latex(table(mean(0.8), columns=(column, NIH), title=NASTY, data=NASTY))
        assert text.count(escape(NASTY)) == 4
        bare = re.sub(r"\\[\\{}$&#%_]", "", text)
        assert bare.count("{") == bare.count("}")
        assert not re.search(r"[$#^~_]", bare)
        assert re.findall(r"(?<!\\)%", text) == ["%", "%"]  # the template's own
        assert "\n\n" not in text

    def test_every_row_has_as_many_cells_as_the_table_columns(self):
        text = latex(made())
        assert r"\begin{tabular}{llccc}" in text
        assert {len(row) for row in rows(text)[1:]} == {5}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\\b", r"a\textbackslash{}b"),
        ("{a}", r"\{a\}"),
        ("1 % $ & # _", r"1 \% \$ \& \# \_"),
        ("^~", r"\textasciicircum{}\textasciitilde{}"),
        ("p < 0.05 > |", r"p \ensuremath{<} 0.05 \ensuremath{>} \ensuremath{|}"),
        ("0.8 ± 0.1", r"0.8 \ensuremath{\pm} 0.1"),
        ("\N{MINUS SIGN}1\N{EN DASH}2", r"\ensuremath{-}1--2"),
        ('"a"', "''a''"),
        ("a\n\n b", "a b"),
        (3, "3"),
    ],
)
def test_escaped_text_is_read_as_it_was(text, written):
    assert escape(text) == written

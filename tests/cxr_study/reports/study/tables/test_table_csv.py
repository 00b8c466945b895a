import io

import pandas as pd
import pytest

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.table_csv import csv
from cxr_study.reports.study.tables.tables import Column
from cxr_study.studies.papers.published_results import Place
from study_tables import NIH, SURGICAL, mean, published, table

VANILLA = Row("vanilla", "fedbn+")


def read(*tables):
    return pd.read_csv(io.StringIO(csv(tables)), dtype={"setting": str})


def test_every_cell_of_every_table_is_a_line():
    lines = [mean(0.8), mean(0.6, method="vanilla"), mean(0.9, setting="4")]
    first = table(*lines, columns=(NIH, Column("4", "nih", ("4",))), rows=(SURGICAL, VANILLA))
    found = read(first, table(mean(0.7)))
    assert found[["table", "method", "setting"]].to_numpy().tolist() == [
        ["nih-all", "surgical", "2"],
        ["nih-all", "surgical", "4"],
        ["nih-all", "vanilla", "2"],
        ["nih-all", "vanilla", "4"],
        ["nih-all", "surgical", "2"],
    ]
    assert found["value"].fillna(-1).tolist() == [0.8, 0.9, 0.6, -1, 0.7]


def test_ours_and_theirs_stand_side_by_side():
    lines = [mean(0.81237, seed=0), mean(0.81237, seed=1)]
    theirs = published(0.82, sd=0.07, low=0.81, high=0.83)
    p_values = {Place("2", SURGICAL, "global", "nih", "all"): 0.04}
    made = table(*lines, published=[theirs], p_values=p_values)
    [found] = read(made).to_dict("records")
    assert found == {
        "table": "nih-all", "setting": "2", "method": "surgical", "strategy": "fedbn+",
        "model": "global", "test": "nih", "group": "all", "metric": "auroc",
        "runs": 2, "seeds": 2, "value": 0.81237, "sd": 0.1, "low": 0.81237, "high": 0.81237,
        "classes": 14,
        "published": 0.82, "published_sd": 0.07, "published_low": 0.81, "published_high": 0.83,
        "published_classes": 14, "source": "ML4H 2024, Table 2",
        "difference": pytest.approx(-0.00763), "holm": 0.04, "best": False,
    }  # fmt: skip


def test_sd_and_interval_of_what_is_published_are_of_auroc_alone():
    columns = (Column("BCE", "nih", ("2",), metric="bce"),)
    theirs = published(0.82, sd=0.07, low=0.81, high=0.83, bce=0.15)
    [found] = read(table(mean(0.8), columns=columns, published=[theirs])).to_dict("records")
    assert (found["value"], found["published"]) == (0.25, 0.15)
    assert pd.isna(found["published_sd"]) and pd.isna(found["published_low"])


def test_what_is_not_defined_is_empty():
    [found] = read(table(mean(None))).to_dict("records")
    assert pd.isna(found["value"]) and (found["runs"], found["seeds"]) == (1, 0)
    assert pd.isna(found["published"]) and pd.isna(found["source"])

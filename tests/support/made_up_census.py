"""A small site, counted by hand."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cxr_audit.census.census import CellCount, count_data
from cxr_audit.census.pixels import BINS
from cxr_audit.census.shareable_census import share
from cxr_study.data.labels.uncertain_labels import LabelPolicy, apply_policy
from cxr_study.data.sites.site_data import SiteLabels

nan = np.nan
ROWS = [
    # image patient view     sex  age   Edema  Mass  split         status
    ("j", "1", "lateral", "F",  34.0,  1.0,   0.0, None,         None),
    ("a", "1", "PA",      "F",  34.0,  1.0,   0.0, "train",      "ok"),
    ("b", "1", "PA",      "F",  35.0,  1.0,  -1.0, "train",      "ok"),
    ("c", "2", "AP",      "M",  90.0, -1.0,  -1.0, "train",      "ok"),
    ("d", "3", "AP",      "",   nan,  -2.0,   1.0, "validation", "ok"),
    ("e", "4", "frontal", "M",  40.0,  0.0,  -1.0, "test",       "ok"),
    ("f", "5", "PA",      "M",  41.0,  1.0,   nan, "test",       "ok"),
    ("g", "6", "PA",      "M",  42.0,  1.0,   1.0, "test",       "missing"),
    ("h", "7", "PA",      "M",  43.0,  1.0,   1.0, "train",      "duplicate"),
    ("i", "8", "PA",      "M",  44.0,  1.0,   1.0, "unused",     None),
    ("k", "9", "PA",      "F",  50.0,  1.0,   0.0, None,         None),  # another site's
]  # fmt: skip
NAMES = ["image", "patient", "view", "sex", "age", "Edema", "Mass", "split", "status"]


@pytest.fixture
def site_labels():
    """The site, its rows in a split, and what became of their images."""
    rows = pd.DataFrame(ROWS, columns=NAMES)
    policy = LabelPolicy(by_class={"Mass": "ignore"})
    facts = {"site": "here", "dataset": "nih", "views": "frontal", "policy": policy}
    site = SimpleNamespace(path=Path("/sites/here.yaml"), patients=None, **facts)
    read = rows[NAMES[:7]]
    table = apply_policy(read, policy).assign(split=rows["split"], file="")
    table = table[rows["split"].notna()].reset_index(drop=True)
    in_split = table[table["split"] != "unused"].reset_index(drop=True)
    looked_at = rows.loc[rows["status"].notna(), ["image", "status"]].reset_index(drop=True)
    index = looked_at.assign(detail="", notes="")
    index.loc[index["image"] == "h", "detail"] = "e"
    return SiteLabels(site, read, table), in_split, index


@pytest.fixture
def census(site_labels):
    return count_data(*site_labels)


@pytest.fixture
def large_census(census):
    """Makes the census of a site with so many times more of everything."""

    def make(times=100):
        def more(tallies):
            return {n: CellCount(t.images * times, t.patients * times) for n, t in tallies.items()}

        changed = {name: more(getattr(census, name)) for name in ("views", "sex", "age")}
        changed |= more({"total": census.total})
        classes = census.classes.items()
        of_class = {name: dataclasses.replace(of, read=more(of.read)) for name, of in classes}
        return dataclasses.replace(census, **changed, classes=of_class)

    return make


@pytest.fixture
def shared(large_census):
    return share(large_census(), 10, np.arange(BINS))

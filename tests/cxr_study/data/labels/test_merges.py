import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_study.common.errors import InputError
from cxr_study.data.labels import label_table as state
from cxr_study.data.labels import merges
from cxr_study.data.labels.label_table import DESCRIPTORS, assemble, classes
from cxr_study.data.labels.vocabulary import catalogue, class_name

NAN = math.nan
STATES = [state.POSITIVE, state.NEGATIVE, state.UNCERTAIN, state.BLANK, NAN]


def table(columns):
    """A label table as read with these class columns."""
    labels = {name: np.array(states, float) for name, states in columns.items()}
    images = [f"{row}.png" for row in range(len(next(iter(labels.values()))))]
    return assemble(labels, image=images, patient="p", view="PA")


def naive_or(labels):
    for label in (state.POSITIVE, state.UNCERTAIN):
        if label in labels:
            return label
    if any(math.isnan(label) for label in labels):
        return NAN
    return state.BLANK if state.BLANK in labels else state.NEGATIVE


@given(st.lists(st.tuples(*[st.sampled_from(STATES)] * 3), min_size=1, max_size=6))
def test_a_merge_of_parts_agrees_with_the_rule_cell_by_cell(rows):
    read = table(dict(zip(("Rib", "X", "Fracture"), zip(*rows, strict=True), strict=True)))
    merged = merges.apply(read, {"Fracture": ["Rib", "X"]}, "table")
    np.testing.assert_array_equal(merged["Fracture"], [naive_or(row) for row in rows])


def test_of_a_broader_column_only_what_excludes_the_class_stays():
    read = table({"Nodule/Mass": STATES})
    merged = merges.apply(read, {"Mass": ["Nodule/Mass"], "Nodule": ["Nodule/Mass"]}, "vindr")
    for name in ("Mass", "Nodule"):
        np.testing.assert_array_equal(merged[name], [NAN, state.NEGATIVE, NAN, state.BLANK, NAN])
    renamed = merges.apply(table({"Effusion": STATES}), {"Pleural Effusion": ["Effusion"]}, "table")
    assert classes(renamed) == ["Pleural Effusion"]
    np.testing.assert_array_equal(renamed["Pleural Effusion"], STATES)


NAMES = ("Edema", "Rib fracture", "Mass", "Clavicle fracture", "COPD")


@pytest.mark.parametrize(("asked", "columns"), [
    ({}, [*NAMES]),
    ({"Fracture": ["Clavicle fracture", "Rib fracture"]}, ["Edema", "Fracture", "Mass", "COPD"]),
    ({"Mass": ["COPD"]}, ["Edema", "Rib fracture", "Mass", "Clavicle fracture"]),
    ({"Mass": ["Mass", "Edema"]}, ["Rib fracture", "Mass", "Clavicle fracture", "COPD"]),
])  # fmt: skip
def test_a_merged_class_stands_where_its_own_column_or_first_source_stood(asked, columns):
    read = table({name: [0, 1] for name in NAMES})[::-1]
    before = read.copy()
    merged = merges.apply(read, asked, "vindr")
    pd.testing.assert_frame_equal(read, before)
    assert list(merged.columns) == [*DESCRIPTORS, *columns]
    pd.testing.assert_frame_equal(merged[[*DESCRIPTORS]], read[[*DESCRIPTORS]])


def test_a_source_that_serves_two_classes_gives_way_to_both():
    read = table({"Edema": [1], "Hydropneumothorax": [1], "Pneumothorax": [0]})
    asked = {"Pleural Effusion": ["hydropneumothorax"], "Pneumothorax": ["hydropneumothorax"]}
    merged = merges.apply(read, asked, "padchest")
    both = {"Edema": 1, "Pleural Effusion": 1, "Pneumothorax": 1}
    assert merged[classes(merged)].to_dict("records") == [both]


@pytest.mark.parametrize(("dataset", "columns", "asked", "merged"), [
    ("nih", ["Pleural Effusion"], {"Fluid": ["Effusion"]}, "Fluid"),
    ("nih", ["Empyema"], {"Effusion": ["EMPYEMA"]}, "Pleural Effusion"),
    ("padchest", ["Round(ed) Atelectasis"], {"atelectasis": ["round_atelectasis"]}, "Atelectasis"),
    ("table", ["Broken wire", "Edema"], {"broken_wire": ["Edema"]}, "Broken wire"),
])  # fmt: skip
def test_names_are_those_of_the_dataset_the_catalogue_or_columns(dataset, columns, asked, merged):
    read = table({name: [name == columns[-1]] for name in columns})
    result = merges.apply(read, asked, dataset)
    assert result[classes(result)].to_dict("list") == {merged: [1]}


@pytest.mark.parametrize("target", sorted({entry.canonical for entry in catalogue()}))
def test_every_merge_of_the_catalogue_can_be_made(target):
    for kind in ("narrower", "broader"):
        found = [e.name for e in catalogue() if (e.canonical, e.relation) == (target, kind)]
        if parts := {class_name(name): [0] for name in found}:
            assert classes(merges.apply(table(parts), {target: [*parts]}, "table")) == [target]


@pytest.mark.parametrize(("asked", "message"), [
    ({"Fracture": ["Rib fractur"]}, r"'Fracture' needs columns that dataset 'vindr' has; got "
     "'Rib fractur', nearest known: Rib fracture"),
    ({"Fracture": ["Rib fracture", "rib_fracture"]}, "'Fracture' names 'Rib fracture' twice"),
    ({"Fracture": []}, "'Fracture' needs at least one other column"),
    ({"Mass": ["mass"]}, "'Mass' needs at least one other column"),
    ({"Bone": ["Rib fracture"], "bone": ["Edema"]}, "'bone' is given twice"),
    ({"patient": ["Edema"]}, "'patient' is a column of every label table"),
    ({"Lung Lesion": ["Mass"]}, r"'Lung Lesion' and 'Mass' must not be merged, here into 'Lung "
     r"Lesion': CheXpert's Lung Lesion is any of mass, .*\. Keep them apart"),
    ({"Lesion": ["Edema", "Other lesion", "Lung Lesion"]},
     "'Other lesion' and 'Lung Lesion' must not be merged, here into 'Lesion'"),
    ({"Fracture": ["Rib fracture"], "Bone": ["Fracture", "Edema"]},
     "'Fracture' is merged into 'Bone' and is itself a merge"),
    ({"Pulmonary fibrosis": ["Edema"], "Scar": ["Fibrosis"]},
     "'Fibrosis' is merged into 'Scar' and is itself a merge"),
    ({"Bone": ["Rib fracture"], "Fracture": ["Rib fracture"]},
     "'Rib fracture' is merged into Bone and Fracture; .* does not relate it to 'Bone'"),
    ({"Nodule": ["Nodule/Mass", "Edema"]},
     "'Nodule/Mass' contains more than 'Nodule', so it must be its only source"),
])  # fmt: skip
def test_a_merge_that_cannot_be_meant_is_refused_with_the_reason(asked, message):
    present = ("Mass", "Rib fracture", "Edema", "Nodule/Mass", "Other lesion", "Lung Lesion")
    with pytest.raises(InputError, match=f"^{message}"):
        merges.apply(table({name: [0] for name in (*present, "Fibrosis")}), asked, "vindr")

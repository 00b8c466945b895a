import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_studies.partition import class_sets
from cxr_studies.partition.class_sets import class_sets_of, draw, published, read_class_sets
from cxr_study.common.errors import InputError
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES


def union(sets):
    return {name for labelled in sets for name in labelled}


def shared(sets):
    return len(set.intersection(*map(set, sets)))


def test_published_sets_of_all_sites_are_all_of_nih_and_share_what_they_should():
    assert class_sets.published_sites() == (2, 3, 4, 5, 6, 8, 10)
    for sites in class_sets.published_sites():
        sets = published(sites)
        assert len(sets) == sites and union(sets) == set(NIH_CLASSES)
        assert all(list(labelled) == sorted(set(labelled)) for labelled in sets)
    for number in (0, 1, 2, 4, 8, 12, 14):
        sets = published(4, number)
        assert shared(sets) == number and union(sets) == set(NIH_CLASSES)
    first, second = map(set, published(2))
    assert first & second == {"Cardiomegaly", "Emphysema", "Mass", "Pleural Effusion"}
    with pytest.raises(InputError, match="a list of classes for each of 3 sites; got 4"):
        published(3, 8)


@given(st.integers(1, 10), st.integers(0, 14), st.integers(0, 3))
def test_a_drawn_class_is_at_one_site_or_all_as_asked_and_the_seed_decides(sites, number, seed):
    sets = draw(NIH_CLASSES, sites, shared=number, seed=seed)
    assert union(sets) == set(NIH_CLASSES)
    assert max(map(len, sets)) - min(map(len, sets)) <= 1
    assert sites == 1 or shared(sets) == number
    assert sets == draw(NIH_CLASSES[::-1], sites, shared=number, seed=seed)
    first, other = (draw(NIH_CLASSES, 3, shared=2, seed=seed) for seed in (0, 1))
    assert first != other


@pytest.mark.parametrize(("sites", "number"), [(3, 0), (2, 3), (2, -1)])
def test_what_cannot_be_drawn_is_refused(sites, number):
    with pytest.raises(InputError, match=f"{sites} sites need a class each"):
        draw(["Mass", "Edema"], sites, shared=number, seed=0)
    assert sorted(draw(["Mass", "Edema"], 2, shared=0, seed=0)) == [("Edema",), ("Mass",)]


def test_sets_are_as_published_where_they_were_and_else_drawn_from_the_seed():
    for sites, number in ((2, None), (10, None), (4, 0), (4, 8)):
        sets = class_sets_of(NIH_CLASSES[::-1], sites, shared=number, seed=5)
        assert sets == published(sites, number)
    for classes in (NIH_CLASSES, CHEXPERT_CLASSES):
        sets = class_sets_of(classes[::-1], 4, shared=len(classes), seed=0)
        assert sets == (tuple(classes),) * 4
    drawn = (NIH_CLASSES, 2, 10, 0), (NIH_CLASSES, 3, 8, 0), (CHEXPERT_CLASSES, 4, 8, 1)
    for classes, sites, number, seed in drawn:
        sets = class_sets_of(classes, sites, shared=number, seed=seed)
        assert sets == draw(classes, sites, shared=number, seed=seed)


@pytest.mark.parametrize(("classes", "sites", "number", "message"), [
    (NIH_CLASSES, 7, None, "key 'clients': needs 7; has 2, 3, 4, 5, 6, 8, 10"),
    (CHEXPERT_CLASSES, 2, None, r"14 classes of NIH; these are .* Give the number of classes"),
    (NIH_CLASSES, 2, 15, "at most 14 shared ones"),
])  # fmt: skip
def test_what_is_neither_published_nor_drawn_is_refused(classes, sites, number, message):
    with pytest.raises(InputError, match=message):
        class_sets_of(classes, sites, shared=number, seed=0)


@pytest.mark.parametrize(("text", "message"), [
    ("client: {}", "key 'client' is not known; nearest known: clients"),
    ("clients: {3: []}", "key 'clients': needs 2; has 3"),
    ("clients: {2: [[Mass]]}", "key 'clients', 2: .* for each of 2 sites; got 1"),
    ("clients: {2: [[Mass], []]}", r"key '2', entry 2 needs classes, each once; got \[\]"),
    ("clients: {2: [[Mass, Mass], [Edema]]}", "key '2', entry 1 needs classes, each once"),
    ("clients: {2: [[Mass], Edema]}", "key '2', entry 2 needs a list .*; got 'Edema'"),
])  # fmt: skip
def test_a_file_of_class_sets_is_read_and_a_wrong_one_refused_by_its_place(tmp_path, text, message):
    path = tmp_path / "sets.yaml"
    with pytest.raises(InputError, match=r"need none.*sets\.yaml does not exist"):
        read_class_sets(path, 2)
    path.write_text("clients: {2: [[Mass, Edema], [Mass]]}")
    assert read_class_sets(path, 2) == (("Edema", "Mass"), ("Mass",))
    path.write_text(text)
    with pytest.raises(InputError, match=rf"sets\.yaml.*{message}"):
        read_class_sets(path, 2)

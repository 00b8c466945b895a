import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_study.data.labels.class_sets import (
    ClassSetError,
    check_known,
    class_sets_of,
    draw,
    published,
    published_sites,
    read_class_sets,
)
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES


def union(sets):
    return {name for labelled in sets for name in labelled}


class TestPublished:
    @pytest.mark.parametrize("sites", [2, 3, 4, 5, 6, 8, 10])
    def test_together_the_sites_label_all_of_nih(self, sites):
        assert published_sites() == (2, 3, 4, 5, 6, 8, 10)
        sets = published(sites)
        assert len(sets) == sites and union(sets) == set(NIH_CLASSES)
        assert all(list(labelled) == sorted(set(labelled)) for labelled in sets)

    @pytest.mark.parametrize("shared", [0, 1, 2, 4, 8, 12, 14])
    def test_four_sites_share_as_many_classes_as_they_should(self, shared):
        sets = published(4, shared)
        assert len(set.intersection(*map(set, sets))) == shared
        assert union(sets) == set(NIH_CLASSES)

    def test_two_sites_share_four_classes(self):
        first, second = map(set, published(2))
        assert first & second == {"Cardiomegaly", "Emphysema", "Mass", "Pleural Effusion"}

    def test_what_was_not_published_is_refused(self):
        with pytest.raises(ClassSetError, match="key 'clients': needs 7; has 2, 3, 4, 5, 6, 8, 10"):
            published(7)
        with pytest.raises(ClassSetError, match="a list of classes for each of 3 sites; got 4"):
            published(3, 8)


class TestDraw:
    @given(st.integers(1, 10), st.integers(0, 14), st.integers(0, 3))
    def test_every_class_is_somewhere_and_as_many_as_asked_are_everywhere(
        self, sites, shared, seed
    ):
        sets = draw(NIH_CLASSES, sites, shared=shared, seed=seed)
        assert union(sets) == set(NIH_CLASSES)
        assert max(map(len, sets)) - min(map(len, sets)) <= 1
        if sites > 1:
            assert len(set.intersection(*map(set, sets))) == shared

    def test_the_seed_decides(self):
        first = draw(NIH_CLASSES, 3, shared=2, seed=0)
        assert first == draw(NIH_CLASSES[::-1], 3, shared=2, seed=0)
        assert first != draw(NIH_CLASSES, 3, shared=2, seed=1)

    @pytest.mark.parametrize(("sites", "shared"), [(3, 0), (2, 3), (2, -1)])
    def test_what_cannot_be_drawn_is_refused(self, sites, shared):
        with pytest.raises(ClassSetError, match=f"{sites} sites need a class each"):
            draw(["Mass", "Edema"], sites, shared=shared, seed=0)


class TestClassSetsOf:
    @pytest.mark.parametrize(("sites", "shared"), [(2, None), (10, None), (4, 0), (4, 8)])
    def test_they_are_as_published_where_they_were(self, sites, shared):
        sets = class_sets_of(NIH_CLASSES[::-1], sites, shared=shared, seed=5)
        assert sets == published(sites, shared)

    @pytest.mark.parametrize("classes", [NIH_CLASSES, CHEXPERT_CLASSES])
    def test_with_all_classes_shared_every_site_has_them_all(self, classes):
        sets = class_sets_of(classes[::-1], 4, shared=len(classes), seed=0)
        assert sets == (tuple(classes),) * 4

    @pytest.mark.parametrize(
        ("classes", "sites", "shared"),
        [(NIH_CLASSES, 2, 10), (NIH_CLASSES, 3, 8), (CHEXPERT_CLASSES, 4, 8)],
    )
    def test_others_are_drawn_from_the_seed(self, classes, sites, shared):
        for seed in (0, 1):
            sets = class_sets_of(classes, sites, shared=shared, seed=seed)
            assert sets == draw(classes, sites, shared=shared, seed=seed)

    @pytest.mark.parametrize(
        ("classes", "sites", "shared", "message"),
        [
            (NIH_CLASSES, 7, None, "needs 7; has 2, 3"),
            (CHEXPERT_CLASSES, 2, None, r"14 classes of NIH; these are .* Say how many"),
            (NIH_CLASSES, 2, 15, "at most 14 shared ones"),
        ],
    )
    def test_what_is_neither_published_nor_drawn_is_refused(self, classes, sites, shared, message):
        with pytest.raises(ClassSetError, match=message):
            class_sets_of(classes, sites, shared=shared, seed=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("client: {}", "key 'client' is not known; nearest known: clients"),
        ("clients: {3: []}", "key 'clients': needs 2; has 3"),
        ("clients: {2: [[Mass]]}", "key 'clients', 2: .* for each of 2 sites; got 1"),
        ("clients: {2: [[Mass], []]}", r"key '2', entry 2 needs classes, each once; got \[\]"),
        ("clients: {2: [[Mass, Mass], [Edema]]}", "key '2', entry 1 needs classes, each once"),
        ("clients: {2: [[Mass], Edema]}", "key '2', entry 2 needs a list .*; got 'Edema'"),
        ("[]", "needs lines 'key: value'"),
    ],
)
def test_a_file_of_class_sets_is_read_and_a_wrong_one_refused_by_its_place(tmp_path, text, message):
    path = tmp_path / "sets.yaml"
    with pytest.raises(ClassSetError, match=r"need none.*sets\.yaml does not exist"):
        read_class_sets(path, 2)
    path.write_text("clients: {2: [[Mass, Edema], [Mass]]}")
    assert read_class_sets(path, 2) == (("Edema", "Mass"), ("Mass",))
    path.write_text(text)
    with pytest.raises(ClassSetError, match=rf"sets\.yaml.*{message}"):
        read_class_sets(path, 2)


def test_a_class_that_the_labels_lack_is_refused_with_the_nearest():
    with pytest.raises(ClassSetError, match=r"site 2 is to label 'Masss'.*nearest known: Mass"):
        check_known((("Edema",), ("Masss",)), ("Edema", "Mass"))

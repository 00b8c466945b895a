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


class TestPublished:
    def test_there_are_seven_numbers_of_sites(self):
        assert published_sites() == (2, 3, 4, 5, 6, 8, 10)

    @pytest.mark.parametrize("sites", [2, 3, 4, 5, 6, 8, 10])
    def test_together_the_sites_hold_all_of_nih(self, sites):
        sets = published(sites)
        assert len(sets) == sites
        assert {name for labelled in sets for name in labelled} == set(NIH_CLASSES)
        assert all(list(labelled) == sorted(set(labelled)) for labelled in sets)

    @pytest.mark.parametrize("shared", [0, 1, 2, 4, 8, 12, 14])
    def test_four_sites_share_as_many_classes_as_they_should(self, shared):
        sets = published(4, shared)
        assert len(set.intersection(*map(set, sets))) == shared
        assert {name for labelled in sets for name in labelled} == set(NIH_CLASSES)

    def test_two_sites_share_four_classes(self):
        first, second = published(2)
        assert set(first) & set(second) == {
            "Cardiomegaly", "Emphysema", "Mass", "Pleural Effusion",
        }  # fmt: skip

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
        if shared == 0 and sites > 14:
            return
        sets = draw(NIH_CLASSES, sites, shared=shared, seed=seed)
        assert {name for labelled in sets for name in labelled} == set(NIH_CLASSES)
        assert max(map(len, sets)) - min(map(len, sets)) <= 1
        if sites > 1:
            assert len(set.intersection(*map(set, sets))) == shared

    def test_the_seed_decides(self):
        assert draw(NIH_CLASSES, 3, shared=2, seed=0) == draw(
            NIH_CLASSES[::-1], 3, shared=2, seed=0
        )
        assert draw(NIH_CLASSES, 3, shared=2, seed=0) != draw(NIH_CLASSES, 3, shared=2, seed=1)

    @pytest.mark.parametrize(("sites", "shared"), [(3, 0), (2, 3), (2, -1)])
    def test_what_cannot_be_drawn_is_refused(self, sites, shared):
        with pytest.raises(ClassSetError, match=f"{sites} sites need a class each"):
            draw(["Mass", "Edema"], sites, shared=shared, seed=0)


class TestClassSetsOf:
    @pytest.mark.parametrize(("sites", "shared"), [(2, None), (10, None), (4, 0), (4, 8)])
    def test_they_are_as_published_where_they_were(self, sites, shared):
        assert class_sets_of(NIH_CLASSES[::-1], sites, shared=shared, seed=5) == published(
            sites, shared
        )

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

    def test_what_is_neither_published_nor_drawn_is_refused(self):
        with pytest.raises(ClassSetError, match="needs 7; has 2, 3"):
            class_sets_of(NIH_CLASSES, 7, shared=None, seed=0)
        with pytest.raises(ClassSetError, match=r"14 classes of NIH; these are .* Say how many"):
            class_sets_of(CHEXPERT_CLASSES, 2, shared=None, seed=0)
        with pytest.raises(ClassSetError, match="at most 14 shared ones"):
            class_sets_of(NIH_CLASSES, 2, shared=15, seed=0)


class TestReadClassSets:
    def test_a_file_of_ones_own_is_read(self, tmp_path):
        (tmp_path / "sets.yaml").write_text("clients: {2: [[Mass, Edema], [Mass]]}")
        sets = read_class_sets(tmp_path / "sets.yaml", 2)
        assert sets == (("Edema", "Mass"), ("Mass",))

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
    def test_a_wrong_file_is_refused_by_its_place(self, tmp_path, text, message):
        (tmp_path / "sets.yaml").write_text(text)
        with pytest.raises(ClassSetError, match=rf"sets\.yaml.*{message}"):
            read_class_sets(tmp_path / "sets.yaml", 2)

    def test_a_file_that_does_not_exist_is_named(self, tmp_path):
        with pytest.raises(ClassSetError, match=r"need none.*no\.yaml does not exist"):
            read_class_sets(tmp_path / "no.yaml", 2)


def test_a_class_that_the_labels_lack_is_refused_with_the_nearest():
    with pytest.raises(ClassSetError, match=r"site 2 is to hold 'Masss'.*nearest known: Mass"):
        check_known((("Edema",), ("Masss",)), ("Edema", "Mass"))

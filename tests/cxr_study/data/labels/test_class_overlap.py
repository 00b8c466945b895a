import io

import pytest
import yaml
from rich.console import Console

from cxr_study.data.labels.class_overlap import (
    PossibleMerge,
    SiteClasses,
    class_report,
    print_report,
)
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, SHARED, UNION_CLASSES


def site(name, *classes, dataset="table", columns=(), distinct=()):
    """A site that labels these classes, and has these columns besides."""
    return SiteClasses(name, dataset, classes, (*classes, *columns), distinct)


NIH = site("nih", *NIH_CLASSES, dataset="nih")
CHEXPERT = site("chexpert", *CHEXPERT_CLASSES, dataset="chexpert")


def pairs(*sites):
    return [(pair.name, pair.other, pair.sites) for pair in class_report(sites).near_duplicates]


def printed(report, width=100):
    console = Console(file=io.StringIO(), width=width)
    print_report(report, console)
    return console.file.getvalue()


class TestHolders:
    def test_the_union_is_in_the_order_of_the_head_with_the_sites_that_hold_each_class(self):
        report = class_report([CHEXPERT, NIH])
        assert tuple(report.holders) == UNION_CLASSES
        assert report.holders["Edema"] == ("chexpert", "nih")
        assert report.holders["Hernia"] == ("nih",)

    def test_a_class_is_shared_by_two_sites_or_unique_to_one(self):
        report = class_report([NIH, CHEXPERT])
        assert report.shared == SHARED
        assert set(report.unique) == set(UNION_CLASSES) - set(SHARED)


class TestNearDuplicates:
    def test_classes_of_the_catalogue_are_none_of_each_other(self):
        vindr = site("vindr", "Nodule/Mass", "Rib fracture", "Other lesion", dataset="vindr")
        assert pairs(NIH, CHEXPERT, vindr) == []

    def test_an_unknown_name_is_compared_with_every_other_class(self):
        mercy = site("mercy", "Effusion", "Edema")
        padchest = site("padchest", "pericardial effusion", dataset="padchest")
        assert pairs(mercy, padchest) == [
            ("Effusion", "Pleural Effusion", ("mercy",)),
            ("Effusion", "pericardial effusion", ("mercy",)),
        ]

    def test_within_one_site_too(self):
        assert pairs(site("mercy", "Mass", "Lung masses")) == [("Lung masses", "Mass", ("mercy",))]

    def test_two_unknown_names_are_one_pair(self):
        assert pairs(site("a", "Broken wire"), site("b", "broken wires")) == [
            ("Broken wire", "broken wires", ("a",))
        ]

    @pytest.mark.parametrize("which", ["a", "b"])
    def test_of_two_unknown_names_one_site_may_declare_its_own_distinct(self, which):
        names = {"a": "Broken wire", "b": "broken wires"}
        sites = [site(s, n, distinct=(n,) if s == which else ()) for s, n in names.items()]
        assert pairs(*sites) == []

    def test_every_site_that_holds_a_name_decides_for_itself(self):
        sites = [site("a", "Effusion", distinct=("Effusion",)), site("b", "Effusion")]
        assert pairs(NIH, *sites) == [("Effusion", "Pleural Effusion", ("b",))]

    def test_a_suggestion_can_be_pasted_into_the_site_file(self):
        (pair,) = class_report([site("mercy", "Mass: lung?")]).near_duplicates
        same, other = pair.suggestion.split("; if not: ")
        assert yaml.safe_load(same.partition(": ")[2]) == {"merges": {"Mass": ["Mass: lung?"]}}
        assert yaml.safe_load(other) == {"distinct": ["Mass: lung?"]}


def test_pairs_that_must_never_be_merged_are_named_with_the_reason():
    apart = class_report([NIH, CHEXPERT]).kept_apart
    assert {(entry.name, entry.canonical) for entry in apart} >= {
        ("Lung Lesion", "Mass"),
        ("Pleural Other", "Pleural Thickening"),
        ("Lung Opacity", "Infiltration"),
    }
    assert class_report([NIH, site("vindr", "Clavicle fracture", "Fracture")]).kept_apart == ()


class TestPossibleMerges:
    def test_parts_of_a_class_are_offered_to_the_site_that_has_them(self):
        vindr = site("vindr", "Edema", "Rib fracture", dataset="vindr", columns=["Nodule/Mass"])
        assert class_report([NIH, vindr]).possible_merges == (
            PossibleMerge("vindr", "Fracture", ("Rib fracture",), "narrower"),
            PossibleMerge("vindr", "Mass", ("Nodule/Mass",), "broader"),
            PossibleMerge("vindr", "Nodule", ("Nodule/Mass",), "broader"),
        )

    def test_a_class_that_the_site_leaves_out_is_not_offered(self):
        columns = ["Fracture", "Rib fracture", "Nodule", "Mass", "Nodule/Mass"]
        assert class_report([site("mercy", "Edema", columns=columns)]).possible_merges == ()

    def test_a_broader_column_is_not_offered_where_the_class_has_its_own(self):
        mercy = site("mercy", "Mass", "Nodule", "Nodule/Mass")
        assert class_report([mercy]).possible_merges == ()


class TestPrint:
    def test_every_class_has_a_line_that_marks_its_holders(self):
        lines = printed(class_report([NIH, CHEXPERT])).splitlines()
        assert lines[0].split() == ["class", "nih", "chexpert", "sites"]
        assert "Edema x x 2".split() in [line.split() for line in lines]
        assert "Hernia x . 1".split() in [line.split() for line in lines]
        assert "Classes: 20, of which 7 at more than one site and 13 at one alone." in lines

    def test_ten_sites_fit_into_a_hundred_characters_by_number(self):
        sites = [site(f"hospital_{i}", *UNION_CLASSES) for i in range(1, 11)]
        text = printed(class_report(sites))
        assert max(map(len, text.splitlines())) <= 100
        assert ["class", *map(str, range(1, 11)), "sites"] in [s.split() for s in text.splitlines()]
        assert "10 = hospital_10" in text

    def test_what_there_is_to_decide_stands_below_in_one_piece(self):
        vindr = site("vindr", "Rib fracture", dataset="vindr")
        text = printed(class_report([NIH, CHEXPERT, vindr, site("mercy", "Effusion")]), width=60)
        assert "'Effusion' (mercy) resembles 'Pleural Effusion' (nih, chexpert)" in text
        assert "merges: {Pleural Effusion: [Effusion]}; if not: distinct: [Effusion]" in text
        assert "Kept apart: Lung Lesion and Mass, because" in text
        assert "Possible at vindr" in text
        assert "merges: {Fracture: [Rib fracture]}" in text

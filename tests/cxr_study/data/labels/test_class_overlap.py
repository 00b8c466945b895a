import io
import re

import pytest
import yaml
from rich.console import Console

from cxr_study.data.labels import class_overlap
from cxr_study.data.labels.class_overlap import SiteClasses
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES


def site(name, *classes, columns=(), distinct=()):
    """A site that labels these classes, and has these columns besides."""
    return SiteClasses(name, classes, (*classes, *columns), distinct)


NIH = site("nih", *NIH_CLASSES)
CHEXPERT = site("chexpert", *CHEXPERT_CLASSES)


def printed(*sites, width=100):
    console = Console(file=io.StringIO(), width=width)
    class_overlap.print_report(sites, console)
    return console.file.getvalue()


def wires(distinct):
    names = {"a": "Broken wire", "b": "broken wires"}
    return [site(s, n, distinct=(n,) if s == distinct else ()) for s, n in names.items()]


@pytest.mark.parametrize(("sites", "pairs"), [
    # Classes of the catalogue are none of each other.
    ([NIH, CHEXPERT, site("v", "Nodule/Mass", "Rib fracture")], []),
    # An unknown name is compared with every other class, within one site too.
    ([site("m", "Effusion"), site("p", "pericardial effusion")],
     [("Effusion", "Pleural Effusion", ("m",)), ("Effusion", "pericardial effusion", ("m",))]),
    ([site("m", "Mass", "Lung masses")], [("Lung masses", "Mass", ("m",))]),
    # Two unknown names are one pair, which either site may declare distinct.
    (wires(None), [("Broken wire", "broken wires", ("a",))]), (wires("a"), []), (wires("b"), []),
    # Every site that labels a name decides for itself.
    ([NIH, site("a", "Effusion", distinct=("Effusion",)), site("b", "Effusion")],
     [("Effusion", "Pleural Effusion", ("b",))]),
])  # fmt: skip
def test_names_that_look_alike_are_found(sites, pairs):
    found = class_overlap.near_duplicates(sites)
    assert [(pair.name, pair.other, pair.sites) for pair in found] == pairs


def test_a_suggestion_can_be_pasted_into_the_site_file():
    (pair,) = class_overlap.near_duplicates([site("mercy", "Mass: lung")])
    same, other = pair.suggestion.split("; if not: ")
    assert yaml.safe_load(same.partition(": ")[2]) == {"merges": {"Mass": ["Mass: lung"]}}
    assert yaml.safe_load(other) == {"distinct": ["Mass: lung"]}


def test_parts_of_a_class_are_offered_to_the_site_that_has_them_and_not_the_class_itself():
    vindr = site("vindr", "Edema", "Rib fracture", columns=["Nodule/Mass"])
    lines = class_overlap.possible_merges([NIH, vindr])
    assert [line.split(" count as ")[1] for line in lines] == [
        "Fracture: merges: {Fracture: [Rib fracture]}",
        "Mass: merges: {Mass: [Nodule/Mass]}",
        "Nodule: merges: {Nodule: [Nodule/Mass]}",
    ]
    columns = ["Fracture", "Rib fracture", "Nodule", "Mass", "Nodule/Mass"]
    for classes in (["Edema"], ["Mass", "Nodule", "Nodule/Mass"]):
        mercy = site("mercy", *classes, columns=columns[: 5 * (len(classes) == 1)])
        assert not list(class_overlap.possible_merges([mercy]))


def test_every_class_has_a_line_that_marks_its_sites_and_decisions_stand_below():
    holders = class_overlap.sites_by_class([CHEXPERT, NIH])
    assert tuple(holders) == UNION_CLASSES
    assert (holders["Edema"], holders["Hernia"]) == (("chexpert", "nih"), ("nih",))
    lines = printed(NIH, CHEXPERT).splitlines()
    assert lines[0].split() == ["class", "nih", "chexpert", "sites"]
    assert {"Edema x x 2", "Hernia x . 1"} <= {" ".join(line.split()) for line in lines}
    assert "Classes: 20, of which 7 at more than one site and 13 at one alone." in lines
    vindr = site("vindr", "Clavicle fracture")
    text = printed(NIH, CHEXPERT, vindr, site("mercy", "Effusion"), width=60)
    assert "'Effusion' (mercy) resembles 'Pleural Effusion' (nih, chexpert)" in text
    assert "merges: {Pleural Effusion: [Effusion]}; if not: distinct: [Effusion]" in text
    apart = re.findall("Kept apart: (.*), because", text)
    assert len(apart) == 6 and "Lung Lesion and Mass" in apart
    assert "Possible at vindr" in text
    assert "merges: {Fracture: [Clavicle fracture]}" in text
    sites = [site(f"hospital_{i}", *UNION_CLASSES) for i in range(1, 11)]
    text = printed(*sites)
    assert max(map(len, text.splitlines())) <= 100
    assert ["class", *map(str, range(1, 11)), "sites"] in [s.split() for s in text.splitlines()]
    assert "10 = hospital_10" in text


def test_a_name_outside_the_vocabulary_is_reported_as_a_new_class_with_the_way_to_rename_it():
    mercy = site("m", "Xyz", "Herzgeräusch groß", "Pleuraerguss", "Mass")
    text = printed(mercy, width=300)
    assert "New class: 'Xyz' (m) is not in the vocabulary, and resembles no class" in text
    assert "'Pleuraerguss' (m) resembles 'Pleural Effusion' (no site): German for" in text
    assert "merges: {Pleural Effusion: [Pleuraerguss]}" in text
    assert class_overlap.unknown_names([mercy]) == ["Herzgeräusch groß", "Pleuraerguss", "Xyz"]


@pytest.mark.parametrize(
    "name", ["no Effusion", "Mass?", "kein Edema", "Edema: sans", "无 Mass", "None"]
)
def test_no_merge_is_suggested_for_a_name_that_denies_or_doubts(name):
    text = printed(site("m", name), width=300)
    assert "may mean that something is absent or in doubt" in text
    assert "merges" not in text

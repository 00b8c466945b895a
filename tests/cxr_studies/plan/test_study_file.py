import dataclasses
import json
import re
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
import yaml

from cxr_studies.partition.skew import Skew
from cxr_studies.plan.data_file import DATA_SETS, StudyData
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Scenario, Selection, read_study, shipped, trainings
from cxr_study.common.errors import InputError
from cxr_study.data.labels.vocabulary import NIH_CLASSES

CUT = {"name": "cut", "cut": "nih", "sites": 2}
WHOLE = {"name": "whole", "sites": ["nih", "chexpert"]}
OTHER = {**WHOLE, "methods": ["vanilla"]}
ALL = {"name": "all", "sites": "all"}
KEYS = {
    "title": "A study", "source": "made up", "factor": "data", "scenarios": [CUT, WHOLE],
    "quick": ["cut"], "methods": {"surgical": ["fedbn+", "fedavg"], "complete": ["fedavg"]},
    "seeds": 2, "tests": ["mimic", "nih"],
}  # fmt: skip


@pytest.fixture
def write(tmp_path):
    """Writes a study file with some keys changed."""

    def write_study(**keys):
        path = tmp_path / "own.yaml"
        kept = {key: value for key, value in (KEYS | keys).items() if value is not ...}
        path.write_text(yaml.safe_dump(json.loads(json.dumps(kept)), sort_keys=False))
        return path

    return write_study


def test_a_file_of_ones_own_is_read(write):
    study = read_study(write())
    assert (study.name, study.title, study.source) == ("own", "A study", "made up")
    assert (study.factor, study.quick, study.seeds) == ("data", ("cut",), 2)
    assert study.scenarios == (Scenario(**CUT), Scenario(**WHOLE))
    rows = ["surgical-fedbn+", "surgical-fedavg", "complete-fedavg"]
    assert [row.name for row in study.rows] == rows
    assert study.tests == ("mimic", "nih")
    cut, whole = study.scenarios  # complete labels are there only where a data set is cut
    assert study.rows_of(cut) == study.rows
    assert [row.method for row in study.rows_of(whole)] == ["surgical", "surgical"]
    assert (cut.data_sets, whole.data_sets) == (("nih",), ("nih", "chexpert"))


def test_optional_keys_of_a_scenario_are_read(write):
    scenarios = [
        {**CUT, "name": "a", "shared": 0, "share": "1/8"},
        {**CUT, "name": "b", "share": 0.1},
        {**CUT, "name": "c", "cut": "chexpert", "sites": 7, "shared": 3},
        {**WHOLE, "classes": "shared"},
        {**CUT, "name": "d", "cut": "mimic", "sites": 20, "shared": 0},  # more than its labels
    ]
    a, b, c, whole, d = read_study(write(scenarios=scenarios, quick=["a"])).scenarios
    assert (a.shared, a.share, a.used_share) == (0, Fraction(1, 8), Fraction(1, 4))
    assert (b.shared, b.share, b.used_share) == (None, Fraction(1, 10), Fraction(1, 5))
    assert (c.cut, c.sites, c.shared, c.share, c.used_share) == ("chexpert", 7, 3, None, 1)
    assert (whole.classes, whole.used_share, d.sites) == ("shared", 1, 20)


def test_the_sites_may_be_those_of_the_data_file(write):
    how = {"settings": {"patience": 4}, "model": "last", "methods": ["surgical"]}
    scenarios = [ALL, {**ALL, "name": "b", "classes": "shared", **how}]
    methods = {"surgical": ["fedbn+ samples"], "vanilla": ["fedavg"]}
    variants = {"samples": {"head_weighting": "samples"}}
    more = {"quick": ["b"], "methods": methods, "variants": variants, "tests": ...}
    study = read_study(write(scenarios=scenarios, **more))
    data = StudyData.model_construct(path=Path("d.yaml"), sites=(Path("x"), Path("y")))
    a, b = study.with_sites_of(data).scenarios
    assert study.with_sites_of(data).tests == a.sites == b.sites == ("x", "y")
    assert (b.classes, b.model, b.settings) == ("shared", "last", {"patience": 4})
    assert a.model == "best"
    assert study.rows_of(a) == (Row("surgical", "fedbn+ samples"), Row("vanilla", "fedavg"))
    assert [row.method for row in study.rows_of(b)] == ["surgical"]
    assert [study.settings_of(row) for row in study.rows] == [{"head_weighting": "samples"}, {}]
    with pytest.raises(InputError, match=r"needs two or more; .*d\.yaml has x"):
        study.with_sites_of(data.model_copy(update={"sites": (Path("x"),)}))


@pytest.mark.parametrize(("keys", "message"), [
    ({"titel": "x"}, "key 'titel' is not known; nearest known: title"),
    ({"factor": " "}, "key 'factor' needs a text that is not blank; got ' '"),
    ({"seeds": True}, "key 'seeds' needs a whole number; got True"),
    ({"seeds": 0}, "key 'seeds' needs a number of 1 or more; got 0"),
    ({"quick": ["cot"]}, r"key 'quick' needs names .*nearest known: cut\); got 'cot'"),
    ({"quick": ["cut", "cut"]}, "key 'quick' needs each entry once; got 'cut'"),
    ({"tests": ["mimik"]}, r"key 'tests', entry 1 needs .*: mimic\); got 'mimik'"),
    ({"tests": []}, "key 'tests' needs one entry or more"),
    ({"tests": ...}, "needs key 'tests'; has factor"),
    ({"scenarios": CUT}, "key 'scenarios' needs a list with one entry or more"),
    ({"scenarios": [CUT, CUT]}, "key 'scenarios' needs another name .*; got 'cut'"),
    ({"scenarios": [CUT, ALL]}, "key 'scenarios' needs 'sites: all' in all .* or in none"),
    ({"scenarios": [ALL], "quick": ["all"]}, "key 'tests' does not apply where the sites are"),
    ({"scenarios": [CUT, OTHER]}, ".*entry 2, key 'methods' needs methods of .*'vanilla'"),
    ({"scenarios": [WHOLE], "quick": ["whole"]}, ".* 'complete' needs a scenario that cuts"),
    ({"methods": {}}, "key 'methods' needs one entry or more"),
    ({"methods": {"surgica": ["fedbn"]}}, "key 'methods'.* 'surgica'.*known: surgical"),
    ({"methods": {"surgical": []}}, "key 'methods', key 'surgical' needs one entry or more"),
    ({"methods": {"surgical": ["fedbm+"]}},
     r"key 'methods', key 'surgical': strategy must be one of .*'fedbn\+'.*; got 'fedbm\+'"),
    ({"methods": {"individual": ["fedbn"]}}, "key 'methods', .*'individual' .* got 'fedbn'"),
    ({"methods": {"vanilla": ["fedbn+ samples"]}},
     "key 'methods', key 'vanilla' needs known variants .known: none.; got 'fedbn. samples'"),
    ({"claims": "client"}, ".*'claims'.*nearest known: clients"),
    ({"variants": {"refit": {}}}, "key 'variants' has 'refit', which no method has"),
    ({"variants": {"a b": {}}}, ".* needs letters, digits, - and _ alone; got 'a b'"),
])  # fmt: skip
def test_a_mistake_is_refused_by_file_and_key(write, keys, message):
    with pytest.raises(InputError, match=rf"own\.yaml: {message}"):
        read_study(write(**keys))


@pytest.mark.parametrize(("scenario", "message"), [
    ({**CUT, "cut": "nhi"}, r", key 'cut' needs .*nearest known: nih\); got 'nhi'"),
    ({**CUT, "sites": 1}, ", key 'sites' needs a whole number of 2 or more; got 1"),
    ({**CUT, "sites": ["nih"]}, ", key 'sites' needs a whole number"),
    ({**CUT, "sites": 7}, ": needs key 'shared': no class sets .* for 7 sites of nih"),
    ({**CUT, "cut": "mimic"}, ": needs key 'shared': no class sets .* 2 sites of mimic"),
    ({**CUT, "sites": 16, "shared": 0}, ": 16 sites need a class each .*; got 14 classes"),
    ({**CUT, "shared": 15}, ": 2 sites need .* at most 14 shared ones; got .* 15 of them"),
    ({**CUT, "shared": -1}, ", key 'shared' needs a number of 0 or more"),
    ({**CUT, "share": "2/3"}, ", key 'share' needs a share above 0, at most 1/2 at each"),
    ({**CUT, "share": 0}, ", key 'share' needs a share above 0"),
    ({**CUT, "share": "1/0"}, ", key 'share' needs a share above 0.*; got '1/0'"),
    ({**CUT, "share": "half"}, ", key 'share' needs a share above 0.*; got 'half'"),
    ({**CUT, "label_skew": 0}, ": alpha of the label skew needs a number of 0.01 or more; got 0"),
    ({**CUT, "quantity_skew": "1"}, ", key 'quantity_skew' needs a valid number; got '1'"),
    ({**CUT, "label_skew": 1, "quantity_skew": 1}, ": .* got both"),
    ({**CUT, "label_skew": 1, "share": 0.1}, ": key 'share' needs sites of equal size"),
    ({**CUT, "quantity_skew": 1, "equal_steps": True}, ": key 'equal_steps' needs sites of equal"),
    ({**CUT, "classes": "all"}, ": key 'classes' does not apply where a data set is cut"),
    ({**WHOLE, "shared": 7}, ": key 'shared' does not apply where no data set is cut"),
    ({**WHOLE, "label_skew": 1}, ": key 'label_skew' does not apply where no data set is cut"),
    ({**WHOLE, "sites": 2}, ", key 'sites' needs two data sets or more.*; got 2"),
    ({**WHOLE, "sites": ["nih"]}, ", key 'sites' needs two data sets or more"),
    ({**WHOLE, "sites": ["nih", "nih"]}, ", key 'sites' needs each entry once"),
    ({**WHOLE, "classes": "7"}, ", key 'classes' needs all or shared; got '7'"),
    ({**WHOLE, "model": "first"}, ", key 'model' needs best or last; got 'first'"),
    ({**WHOLE, "methods": ["vanila"]}, ", key 'methods', entry 1 .*nearest known: vanilla"),
])  # fmt: skip
def test_a_mistake_in_a_scenario_is_refused_by_entry_and_key(write, scenario, message):
    with pytest.raises(InputError, match=rf"own\.yaml: key 'scenarios', entry 2{message}"):
        read_study(write(scenarios=[{**CUT, "name": "first"}, scenario]))


def test_the_example_for_people_is_a_study_file_with_every_key(tmp_path):
    page = Path(__file__).parents[3] / "docs/how-to/run-studies.md"
    [example] = re.findall(r"```yaml\n(title: .*?)```", page.read_text("utf-8"), re.DOTALL)
    (tmp_path / "own.yaml").write_text(example, encoding="utf-8")
    study = read_study(tmp_path / "own.yaml")
    assert {scenario.classes for scenario in study.scenarios} == {"all", "shared"}
    assert any(scenario.shared and scenario.share for scenario in study.scenarios)
    skews = {scenario.skew for scenario in study.scenarios}
    assert skews == {None, Skew("quantity", 1), Skew("label", 0.3)}
    assert any(s.model == "last" and s.methods and s.settings for s in study.scenarios)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_study_can_be_read(name):
    study = read_study(name)
    assert study.name == name
    assert 0 < len(study.quick) <= 3 and study.seeds >= 2
    assert set(study.tests) <= set(DATA_SETS) and bool(study.tests) != study.given


@pytest.mark.parametrize(("name", "varied", "values"), [
    ("clients", "sites", [2, 3, 4, 5, 6, 8, 10]),
    ("shared-classes", "shared", [0, 1, 2, 4, 8, 12, 14]),
    ("data-size", "share", [Fraction(1, number) for number in (10, 8, 6, 4, 3, 2)]),
    ("skew", "skew", [None, Skew("quantity", 1), Skew("label", 1), Skew("label", 0.3)]),
])  # fmt: skip
def test_ablations_vary_what_the_papers_vary_and_nothing_else(name, varied, values):
    scenarios = read_study(name).scenarios
    assert [getattr(scenario, varied) for scenario in scenarios] == values
    apart = {"name", varied, *(["quantity_skew", "label_skew"] if varied == "skew" else [])}
    first, *others = [scenario.model_dump(exclude=apart) for scenario in scenarios]
    assert first["cut"] == "nih" and all(other == first for other in others)
    assert (first["model"] == "last") == (name == "skew")


def test_more_local_epochs_make_as_many_steps():
    scenarios = read_study("local-epochs").scenarios
    made = [(s.settings["epochs"], s.settings["num_rounds"], s.model) for s in scenarios]
    assert made == [(1, 60, "last"), (2, 30, "last"), (5, 12, "last")]


def test_fedfbn_has_its_four_experiments():
    study = read_study("fedfbn")
    complete, partial, *others = study.scenarios
    assert (complete.sites, complete.shared) == (2, len(NIH_CLASSES))
    assert (partial.sites, partial.shared) == (2, None)
    assert [s.classes for s in others] == ["shared", "all"]
    assert {s.sites for s in others} == {("nih", "chexpert")}
    federated = [row.strategy for row in study.rows if row.federated]
    assert federated == ["fedavg", "fedbn", "fedbn+"]


NOT_CUT = {"scenarios": ("non-iid partial",), "methods": ("complete",)}


def wanted(study, **selection):
    found = trainings(read_study(study), Selection(**selection))
    return [(seed, scenario.name, row) for seed, scenario, row in found]


def test_every_scenario_has_every_row_that_is_for_it_and_every_seed():
    every = [*product((0, 1), ("2", "4"), read_study("clients").rows)]
    assert wanted("clients", scenarios=("2", "4"), seeds=2) == every
    found = wanted("fedfbn", seeds=1)
    complete = {scenario for _, scenario, row in found if row.method == "complete"}
    assert complete == {"iid complete", "iid partial"}
    assert Row("surgical", "fedbn") in {row for _, _, row in found}


def test_the_study_says_how_many_seeds_and_which_scenarios_the_quick_form_has():
    study = read_study("shared-classes")
    found = wanted(study.name, methods=("surgical",))
    assert {seed for seed, _, _ in found} == set(range(study.seeds))
    found = wanted(study.name, methods=("surgical",), seeds=1, quick=True)
    assert tuple(scenario for _, scenario, _ in found) == study.quick


@pytest.mark.parametrize(("study", "asked", "reported"), [
    ("clients", {"scenarios": ("9",)}, "study clients has no scenario '9'"),
    ("clients", {"methods": ("surgicle",)}, "no method 'surgicle'; nearest .* surgical"),
    ("clients", {"scenarios": ("3",), "quick": True}, r"no run .*\(the quick form; scenarios 3\)"),
    ("fedfbn", NOT_CUT, r"no run of .*\(scenarios non-iid partial; methods complete\)"),
])  # fmt: skip
def test_what_the_study_does_not_have_or_leaves_nothing_is_refused(study, asked, reported):
    with pytest.raises(InputError, match=reported):
        wanted(study, **asked)


def test_a_selection_is_described_in_words():
    assert str(Selection()) == "all of it"
    every = Selection(("2", "4"), ("vanilla",), 1, quick=True)
    assert str(every) == "the quick form; scenarios 2, 4; methods vanilla; 1 seed"
    assert str(dataclasses.replace(every, scenarios=None, seeds=3)).endswith("vanilla; 3 seeds")

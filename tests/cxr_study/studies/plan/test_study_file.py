import dataclasses
import re
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from cxr_study.data.labels.class_sets import class_sets_of, published
from cxr_study.data.labels.vocabulary import NIH_CLASSES
from cxr_study.jobs.methods import Row
from cxr_study.studies.plan.data_file import DATA_SETS, StudyData
from cxr_study.studies.plan.scenario import CLASSES, Scenario
from cxr_study.studies.plan.study_file import StudyFileError, read_study, shipped

CUT = {"name": "cut", "cut": "nih", "sites": 2}
WHOLE = {"name": "whole", "sites": ["nih", "chexpert"]}
ALL = {"name": "all", "sites": "all"}
KEYS = {
    "title": "A study",
    "source": "nobody",
    "factor": "data",
    "scenarios": [CUT, WHOLE],
    "quick": ["cut"],
    "methods": {"surgical": ["fedbn+", "fedavg"], "complete": ["fedavg"]},
    "seeds": 2,
    "tests": ["mimic", "nih"],
}


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes a study with some keys changed."""

    def write_study(**keys):
        path = tmp_path / "own.yaml"
        kept = {key: value for key, value in (KEYS | keys).items() if value is not ...}
        path.write_text(yaml.safe_dump(kept, sort_keys=False))
        return path

    return write_study


class TestReadStudy:
    def test_a_file_of_ones_own_is_read(self, write):
        study = read_study(write())
        assert (study.name, study.title, study.source) == ("own", "A study", "nobody")
        assert (study.factor, study.quick, study.seeds) == ("data", ("cut",), 2)
        assert study.scenarios == (
            Scenario("cut", "nih", 2),
            Scenario("whole", None, ("nih", "chexpert")),
        )
        assert study.rows == (
            Row("surgical", "fedbn+"),
            Row("surgical", "fedavg"),
            Row("complete", "fedavg"),
        )
        assert study.tests == ("mimic", "nih")

    def test_what_a_scenario_may_say_besides_is_read(self, write):
        scenarios = [
            {**CUT, "name": "a", "shared": 0, "share": "1/8"},
            {**CUT, "name": "b", "share": 0.1},
            {**CUT, "name": "c", "cut": "chexpert", "sites": 7, "shared": 3},
            {**WHOLE, "classes": "shared"},
        ]
        a, b, c, whole = read_study(write(scenarios=scenarios, quick=["a"])).scenarios
        assert (a.shared, a.share, a.used) == (0, Fraction(1, 8), Fraction(1, 4))
        assert (b.shared, b.share, b.used) == (None, Fraction(1, 10), Fraction(1, 5))
        assert (c.cut, c.sites, c.shared, c.share, c.used) == ("chexpert", 7, 3, None, 1)
        assert (whole.classes, whole.used) == ("shared", 1)

    def test_complete_labels_are_there_only_where_a_data_set_is_cut(self, write):
        study = read_study(write())
        cut, whole = study.scenarios
        assert study.rows_of(cut) == study.rows
        assert [row.method for row in study.rows_of(whole)] == ["surgical", "surgical"]

    def test_the_sites_may_be_those_of_the_data_file(self, write):
        how = {"settings": {"patience": 4}, "model": "last", "methods": ["surgical"]}
        scenarios = [ALL, {**ALL, "name": "b", "classes": "shared", **how}]
        methods = {"surgical": ["fedbn+-samples"], "vanilla": ["fedavg"]}
        study = read_study(write(scenarios=scenarios, quick=["b"], methods=methods, tests=...))
        data = StudyData(Path("d.yaml"), None, {"x": Path(), "y": Path()}, None, None, {}, True)
        a, b = study.on(data).scenarios
        assert study.on(data).tests == a.sites == b.sites == ("x", "y")
        assert (b.classes, b.last, b.settings, a.last) == (
            "shared",
            True,
            (("patience", 4),),
            False,
        )
        assert study.rows_of(a) == (Row("surgical", "fedbn+-samples"), Row("vanilla", "fedavg"))
        assert [row.method for row in study.rows_of(b)] == ["surgical"]
        assert study.rows[0].job_strategy == "fedbn+" and study.rows[0].head_weighting == "samples"
        with pytest.raises(StudyFileError, match=r"needs two or more; .*d\.yaml has x"):
            study.on(dataclasses.replace(data, sources={"x": Path()}))

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"titel": "x"}, "key 'titel' is not known; nearest known: title"),
            ({"source": ...}, "needs key 'source'; has title, factor"),
            ({"title": 3}, "key 'title' needs a text .*; got 3"),
            ({"factor": ""}, "key 'factor' needs a text"),
            ({"seeds": 0}, "key 'seeds' needs a whole number of 1 or more; got 0"),
            ({"quick": ["cot"]}, r"key 'quick' needs .*nearest known: cut.*; got 'cot'"),
            ({"quick": [2]}, r"key 'quick' needs names of scenarios \(in quotes .*\); got 2"),
            ({"quick": "cut"}, "key 'quick' needs a list with one entry or more; got 'cut'"),
            ({"quick": ["cut", "cut"]}, "key 'quick' needs each entry once"),
            ({"tests": ["mimik"]}, r"key 'tests' needs .*nearest known: mimic.*; got 'mimik'"),
            ({"tests": []}, "key 'tests' needs a list with one entry or more"),
            ({"scenarios": CUT}, "key 'scenarios' needs a list with one scenario or more"),
            ({"scenarios": [CUT, "nih"]}, "key 'scenarios' needs keys .* scenario 2; got 'nih'"),
            ({"scenarios": [CUT, CUT]}, "key 'scenarios' needs another name .*; got 'cut'"),
            ({"methods": ["surgical"]}, r"key 'methods' needs lines 'method: \[strategies\]'"),
            ({"methods": {}}, "key 'methods' needs one method or more"),
            (
                {"scenarios": [CUT, ALL]},
                "key 'scenarios' needs 'sites: all' in all scenarios or in",
            ),
            ({"scenarios": [ALL], "quick": ["all"]}, "key 'tests' has no use where the sites are"),
            ({"tests": ...}, "needs key 'tests'; has title"),
            (
                {"scenarios": [CUT, {**WHOLE, "methods": ["vanilla"]}]},
                "scenario 2, key 'methods' needs methods of the study; .*, got 'vanilla'",
            ),
            (
                {"methods": {"surgica": ["fedbn"]}},
                "key 'methods', key 'surgica' is not known; nearest known: surgical",
            ),
            (
                {"methods": {"surgical": ["fedbm+"]}},
                r"key 'methods', key 'surgical' needs .*\(nearest known: fedbn\+.*; got 'fedbm\+'",
            ),
            (
                {"methods": {"individual": ["fedbn"]}},
                "key 'methods', key 'individual' needs .*; got 'fedbn'",
            ),
            (
                {"scenarios": [WHOLE], "quick": ["whole"]},
                "key 'methods', key 'complete' needs a scenario that cuts a data set",
            ),
        ],
    )
    def test_a_mistake_is_refused_by_file_and_key(self, write, keys, message):
        with pytest.raises(StudyFileError, match=rf"own\.yaml: {message}"):
            read_study(write(**keys))

    def test_a_mistake_in_a_scenario_is_refused_by_its_number(self, write):
        path = write(scenarios=[CUT, {**WHOLE, "classes": "7"}])
        with pytest.raises(StudyFileError, match=r"own\.yaml: scenario 2, key 'classes' needs"):
            read_study(path)

    def test_a_name_that_is_no_studys_is_refused(self):
        with pytest.raises(StudyFileError, match=r"study 'cliens': .*nearest known: clients"):
            read_study("cliens")


def sets(scenario):
    """Class sets of a scenario that cuts NIH, as sets."""
    drawn = class_sets_of(NIH_CLASSES, scenario.sites, shared=scenario.shared, seed=0)
    return [set(labelled) for labelled in drawn]


def test_the_example_for_people_is_a_study_file_with_every_key(tmp_path):
    readme = (Path(__file__).parents[4] / "custom/STUDIES.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```yaml\n(title: .*?)```", readme, re.DOTALL)
    (tmp_path / "own.yaml").write_text(example, encoding="utf-8")
    study = read_study(tmp_path / "own.yaml")
    assert {scenario.classes for scenario in study.scenarios} == set(CLASSES)
    assert any(scenario.shared and scenario.share for scenario in study.scenarios)
    assert any(
        scenario.last and scenario.methods and scenario.settings for scenario in study.scenarios
    )


class TestShipped:
    def test_every_shipped_study_can_be_read(self):
        assert shipped() == (
            "clients", "data-size", "fedfbn", "head-weightings", "methods", "nih-chexpert",
            "shared-classes",
        )  # fmt: skip
        for name in shipped():
            study = read_study(name)
            assert study.name == name
            assert 0 < len(study.quick) <= 3 <= study.seeds
            assert set(study.tests) <= set(DATA_SETS) and bool(study.tests) != study.given

    @pytest.mark.parametrize(
        ("name", "varied", "values"),
        [
            ("clients", "sites", [2, 3, 4, 5, 6, 8, 10]),
            ("shared-classes", "shared", [0, 1, 2, 4, 8, 12, 14]),
            ("data-size", "share", [Fraction(1, number) for number in (10, 8, 6, 4, 3, 2)]),
        ],
    )
    def test_ablations_vary_what_the_papers_vary_and_nothing_else(self, name, varied, values):
        study = read_study(name)
        assert [getattr(scenario, varied) for scenario in study.scenarios] == values
        assert [scenario.name for scenario in study.scenarios] == list(map(str, values))
        same = {dataclasses.replace(s, name="", **{varied: None}) for s in study.scenarios}
        assert len(same) == 1 and same.pop().cut == "nih"

    def test_fedfbn_has_its_four_experiments(self):
        study = read_study("fedfbn")
        complete, partial, *others = study.scenarios
        assert sets(complete) == [set(NIH_CLASSES)] * 2
        assert tuple(map(len, sets(partial))) == (11, 7)
        assert (partial.sites, partial.shared) == (2, None) and len(published(2)) == 2
        assert [(s.sites, s.classes) for s in others] == [
            (("nih", "chexpert"), "shared"),
            (("nih", "chexpert"), "all"),
        ]
        federated = [row.strategy for row in study.rows if row.federated]
        assert federated == ["fedavg", "fedbn", "fedbn+"]

from pathlib import Path

import pytest

from cxr_study.common.yaml_files import Keys
from cxr_study.studies.plan.scenario import read_scenario
from cxr_study.studies.plan.study_file import StudyFileError

CUT = {"name": "cut", "cut": "nih", "sites": 2}
WHOLE = {"name": "whole", "sites": ["nih", "chexpert"]}


def read(scenario):
    return read_scenario(Keys(Path("own.yaml"), scenario, StudyFileError, "scenario 2, "))


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        ({"sites": 2}, "needs key 'name'; has sites"),
        ({**CUT, "name": 2}, "key 'name' needs a text .*; got 2"),
        ({**CUT, "site": 2}, "key 'site' is not known; nearest known: sites"),
        ({**CUT, "cut": "nhi"}, "key 'cut' needs nih, chexpert or mimic; got 'nhi'"),
        ({**CUT, "sites": 1}, "key 'sites' needs a whole number of 2 or more; got 1"),
        ({**CUT, "sites": ["nih"]}, "key 'sites' needs a whole number"),
        ({**CUT, "sites": 7}, "needs key 'shared': no class sets .* for 7 sites of nih"),
        ({**CUT, "cut": "mimic"}, "needs key 'shared': no class sets .* 2 sites of mimic"),
        ({**CUT, "sites": 16, "shared": 0}, "16 sites need a class each .*; got 14 classes, 0"),
        ({**CUT, "shared": 15}, "2 sites need .* at most 14 shared ones; got .* 15 of them"),
        ({**CUT, "cut": "chexpert", "shared": 14}, "2 sites .* at most 13 shared ones"),
        ({**CUT, "shared": -1}, "key 'shared' needs a whole number of 0 or more"),
        ({**CUT, "share": "2/3"}, "key 'share' needs a share above 0, at most 1/2 at each of"),
        ({**CUT, "share": 0}, "key 'share' needs a share above 0"),
        ({**CUT, "share": "1/0"}, "key 'share' needs a share above 0.*; got '1/0'"),
        ({**CUT, "share": "half"}, "key 'share' needs a share above 0.*; got 'half'"),
        ({**CUT, "classes": "all"}, "key 'classes' has no use where a data set is cut"),
        ({**WHOLE, "shared": 7}, "key 'shared' has no use where no data set is cut"),
        ({**WHOLE, "share": 0.5}, "key 'share' has no use where no data set is cut"),
        ({**WHOLE, "sites": 2}, "key 'sites' needs a list with one entry or more; got 2"),
        ({**WHOLE, "sites": ["nih"]}, "key 'sites' needs two data sets or more"),
        ({**WHOLE, "sites": ["nih", "nhi"]}, r"key 'sites' needs .*nearest known: nih"),
        ({**WHOLE, "classes": "7"}, "key 'classes' needs all or shared; got '7'"),
        ({**WHOLE, "sites": "al"}, "key 'sites' needs a list with one entry or more; got 'al'"),
        ({**WHOLE, "model": "first"}, "key 'model' needs best or last; got 'first'"),
        ({**WHOLE, "settings": 3}, "key 'settings' needs lines 'setting: value'"),
        ({**WHOLE, "methods": ["vanila"]}, "key 'methods' needs .*nearest known: vanilla"),
    ],
)
def test_a_mistake_is_refused_by_its_place_and_key(scenario, message):
    with pytest.raises(StudyFileError, match=rf"own\.yaml: scenario 2, {message}"):
        read(scenario)


def test_mimic_may_have_more_classes_than_those_of_its_own_labels():
    assert read({**CUT, "cut": "mimic", "sites": 20, "shared": 0}).sites == 20


def test_its_sites_train_on_the_data_set_that_is_cut_or_on_those_that_are_sites():
    assert read(CUT).data_sets == ("nih",)
    assert read(WHOLE).data_sets == ("nih", "chexpert")

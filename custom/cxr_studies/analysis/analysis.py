"""Everything that is computed of a study's results before it is reported."""

from dataclasses import dataclass

import pandas as pd

from cxr_studies.analysis import claim_checks
from cxr_studies.analysis.claim_checks import Judged
from cxr_studies.analysis.class_tests import class_tests
from cxr_studies.analysis.patient_intervals import PatientIntervals, patient_intervals
from cxr_studies.analysis.significance import significance
from cxr_studies.analysis.study_results import StudyResults
from cxr_studies.analysis.subgroups import subgroups
from cxr_studies.papers import published_claims
from cxr_study.common.progress import bar


@dataclass(frozen=True, eq=False)
class Analysis:
    """Results with what follows from them; see the functions that `analyse` calls."""

    results: StudyResults
    tests: pd.DataFrame
    by_patient: PatientIntervals
    by_class: pd.DataFrame
    by_subgroup: pd.DataFrame
    judged: tuple[Judged, ...]


def analyse(results: StudyResults, processes: int) -> Analysis:
    """Compute it all, in so many processes at the same time."""
    with bar("resampling patients") as report:
        by_patient = patient_intervals(results, processes=processes, report=report)
    with bar("testing classes") as report:
        by_class = class_tests(results, processes=processes, report=report)
    with bar("measuring subgroups") as report:
        by_subgroup = subgroups(results, processes=processes, report=report)
    judged = claim_checks.judge(published_claims.read(), results)
    return Analysis(results, significance(results), by_patient, by_class, by_subgroup, judged)

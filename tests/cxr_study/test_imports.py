"""What a process of this project imports before it knows whether it needs it: nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = {"joblib", "keras", "matplotlib", "pydicom", "scipy", "sklearn", "tensorflow"}


@pytest.mark.parametrize(
    "module", ["cxr_study.cli.main", "cxr_phantom.pretrain", "cxr_studies.runner.one_run"]
)
def test_a_program_starts_without_what_it_may_not_need(module):
    program = f"import sys, {module}\nprint(*{HEAVY} & set(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == []

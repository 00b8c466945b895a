"""The rooms of the packages: which may import which, and how many modules each holds."""

from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from product import imports, product

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "surgical_aggregation",
    "cxr_study",
    "cxr_deployment",
    "cxr_phantom",
    "cxr_studies",
    "cxr_audit",
    "cxr_pretrained",
)

FLOORS = """
surgical_aggregation
surgical_aggregation.aggregation
surgical_aggregation.wire
surgical_aggregation.kit
surgical_aggregation.checkpoints
surgical_aggregation.server.access
surgical_aggregation.server.models
surgical_aggregation.server.workflows
surgical_aggregation.server.records
surgical_aggregation.site.contract
surgical_aggregation.site.training
surgical_aggregation.site
surgical_aggregation.encryption
cxr_study
cxr_study.common
cxr_study.data.labels
cxr_study.data.images
cxr_study.data.readers
cxr_study.data.sites
cxr_study.training
cxr_study.evaluation
cxr_study.jobs
cxr_study.runs
cxr_study.models
cxr_study.reports.page
cxr_study.reports.card
cxr_study.reports.run
cxr_study.reports.explanation
cxr_study.cli
cxr_deployment
cxr_deployment.commands
cxr_phantom.drawing
cxr_phantom.patients
cxr_phantom.writers
cxr_phantom
cxr_phantom.commands
cxr_pretrained
cxr_audit.census
cxr_audit.report
cxr_audit.commands
cxr_studies.partition
cxr_studies.baseline
cxr_studies.plan
cxr_studies.papers
cxr_studies.runner
cxr_studies.analysis
cxr_studies.report.tables
cxr_studies.report.figures
cxr_studies.report
cxr_studies.commands
""".split()
"""Rooms from the bottom to the top: a module imports its own room's and those below."""

MOST_MODULES = 15

SIDES = {
    "server": ("surgical_aggregation.server", "surgical_aggregation.encryption.encrypted_agg"),
    "site": (
        "surgical_aggregation.site",
        "surgical_aggregation.encryption.encrypt_result",
        "surgical_aggregation.encryption.decrypt_task",
    ),
}
"""Where a component runs -> how the names of its modules begin."""

FILES = {module: ROOT / path for path, module in product(ROOT).items()}
ROOMS = {name for name, file in FILES.items() if file.name == "__init__.py"}


@pytest.fixture(scope="module")
def imported():
    """Module -> those of the product that it imports."""
    return {name: imports(file, FILES.keys()) - {name} for name, file in FILES.items()}


def room(module):
    """Room of a module; of a package itself."""
    return module if module in ROOMS else module.rpartition(".")[0]


def test_every_room_with_modules_has_a_floor_and_none_is_crowded():
    modules = Counter(room(module) for module in FILES if module not in ROOMS)
    assert modules.keys() <= set(FLOORS) <= ROOMS
    assert {name: n for name, n in modules.items() if n > MOST_MODULES} == {}


def test_no_two_modules_share_a_file_name():
    files = Counter(file.name for file in FILES.values() if file.name != "__init__.py")
    assert [name for name, number in files.items() if number > 1] == []


def test_arrows_point_downwards(imported):
    height = {name: floor for floor, name in enumerate(FLOORS)}
    upwards = [
        f"{module} -> {other}"
        for module, others in imported.items()
        for other in others
        if room(other) != room(module)
        and height.get(room(module), -1) < height.get(room(other), -1)
    ]
    assert sorted(upwards) == []


def test_the_core_imports_no_optional_package(imported):
    found = [
        f"{module} -> {other}"
        for module, others in imported.items()
        for other in others
        if module.split(".")[0] in PACKAGES[:2] and other.split(".")[0] in PACKAGES[2:]
    ]
    assert len(PACKAGES) == 7 and sorted(found) == []


def test_there_is_no_cycle(imported):
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_server_and_site_do_not_import_each_other(imported):
    def side(module):
        return next((side for side in SIDES if module.startswith(SIDES[side])), None)

    crossing = [
        f"{module} -> {other}"
        for module, others in imported.items()
        for other in others
        if {side(module), side(other)} == {*SIDES}
    ]
    assert sorted(crossing) == []


def test_tests_stand_in_the_rooms_of_what_they_test():
    for package in PACKAGES:
        for file in (ROOT / "tests" / package).rglob("test_*.py"):
            name = ".".join(file.parent.relative_to(ROOT / "tests").parts)
            assert name in ROOMS, f"{name} is no room of the product"

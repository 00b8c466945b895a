"""The rooms of the packages: which may import which, and how many modules each holds."""

from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from product import imports, product

ROOT = Path(__file__).parents[1]
ROOMS_OF = {
    "surgical_aggregation": """
        . aggregation wire kit checkpoints server.access server.models server.workflows
        server.records site.contract site.training site encryption""",
    "cxr_study": """
        . common data.labels data.images data.readers data.sites training evaluation jobs runs
        models reports.page reports.card reports.run reports.explanation cli""",
    "cxr_deployment": ". commands",
    "cxr_phantom": "drawing patients writers . commands",
    "cxr_pretrained": ".",
    "cxr_audit": "census report commands",
    "cxr_studies": """
        partition baseline plan papers runner analysis report.tables report.figures report
        commands""",
}
"""Package -> its rooms from the bottom up, "." the package: one imports its own and those below."""
PACKAGES = tuple(ROOMS_OF)
FLOORS = [
    f"{package}.{name}".rstrip(".") for package, names in ROOMS_OF.items() for name in names.split()
]

MOST_MODULES = 15

SIDES = {
    "server": ("surgical_aggregation.server", "surgical_aggregation.encryption.encrypted_agg"),
    "site": ("surgical_aggregation.site", "surgical_aggregation.encryption.encrypt_result",
             "surgical_aggregation.encryption.decrypt_task"),
}  # fmt: skip
"""Where a component runs -> how the names of its modules begin."""

FILES = {module: ROOT / path for path, module in product(ROOT).items()}
ROOMS = {name for name, file in FILES.items() if file.name == "__init__.py"}


@pytest.fixture(scope="module")
def imported():
    """Module -> those of the product that it imports."""
    return {name: imports(file, FILES.keys()) - {name} for name, file in FILES.items()}


@pytest.fixture(scope="module")
def arrows(imported):
    """Each module with each of them."""
    return [(module, other) for module, others in imported.items() for other in others]


def room(module):
    """Room of a module; of a package itself."""
    return module if module in ROOMS else module.rpartition(".")[0]


def floor(module):
    """Number of its room from the bottom; of a room that has none -1."""
    return FLOORS.index(room(module)) if room(module) in FLOORS else -1


def test_every_room_with_modules_has_a_floor_and_none_is_crowded():
    modules = Counter(room(module) for module in FILES if module not in ROOMS)
    assert modules.keys() <= set(FLOORS) <= ROOMS
    assert {name: n for name, n in modules.items() if n > MOST_MODULES} == {}


def test_no_two_modules_share_a_file_name():
    files = Counter(file.name for file in FILES.values() if file.name != "__init__.py")
    assert [name for name, number in files.items() if number > 1] == []


def test_arrows_point_downwards(arrows):
    assert [(one, other) for one, other in arrows if floor(one) < floor(other)] == []


def test_the_core_imports_no_optional_package(arrows):
    def is_core(module):
        return module.split(".")[0] in PACKAGES[:2]

    assert PACKAGES[:2] == ("surgical_aggregation", "cxr_study") and len(PACKAGES) == 7
    assert [(one, other) for one, other in arrows if is_core(one) > is_core(other)] == []


def test_there_is_no_cycle(imported):
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_server_and_site_do_not_import_each_other(arrows):
    def side(module):
        return next((side for side in SIDES if module.startswith(SIDES[side])), None)

    assert [pair for pair in arrows if {*map(side, pair)} == {*SIDES}] == []


def test_tests_stand_in_the_rooms_of_what_they_test():
    for package in PACKAGES:
        for file in (ROOT / "tests" / package).rglob("test_*.py"):
            name = ".".join(file.parent.relative_to(ROOT / "tests").parts)
            assert name in ROOMS, f"{name} is no room of the product"

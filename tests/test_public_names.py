"""What is public: the names in `__all__` of the modules that define them."""

import ast
import re
from pathlib import Path

import pytest

from product import EXAMPLES, product

ROOT = Path(__file__).parents[1]
FILES = {module: ROOT / path for path, module in product(ROOT).items()}
PACKAGES = {module.split(".")[0] for module in FILES}
FENCED = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def public(file):
    """Names in a module's `__all__`."""
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


def described(file):
    """Names that a module defines with a docstring, a constant's below it."""
    body = ast.parse(file.read_bytes()).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(after, ast.Expr):
            yield ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])


PUBLIC = {module: names for module, file in FILES.items() if (names := public(file))}
FOLDERS = ("components", "custom", "docs", "jobs", "poc")
PAGES = [page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")]
OTHERS = [ROOT / "README.md", ROOT / "jobs/job.py", *(ROOT / EXAMPLES).rglob("*.py")]
DOCUMENTS = sorted([*PAGES, *OTHERS])


def used(document):
    """Names of this project that a document's Python imports, or takes of an imported module."""
    text = document.read_text(encoding="utf-8")
    for code in [text] if document.suffix == ".py" else FENCED.findall(text):
        tree, modules = ast.parse(code), {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules |= {alias.asname or alias.name: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in PACKAGES:
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    if name in FILES:
                        modules[alias.asname or alias.name] = name
                    else:
                        yield name
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and modules.get(ast.unparse(node.value)) in FILES:
                yield f"{modules[ast.unparse(node.value)]}.{node.attr}"


def test_documents_and_examples_import_public_names_alone():
    names = {f"{module}.{name}" for module, listed in PUBLIC.items() for name in listed}
    found = {page.relative_to(ROOT).as_posix(): set(used(page)) for page in DOCUMENTS}
    assert {"README.md", f"{EXAMPLES}/hello_surgical/job.py"} < {k for k, v in found.items() if v}
    assert {page: others for page, those in found.items() if (others := those - names)} == {}


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_there_and_described(module):
    there = {"__version__", *described(FILES[module])}
    for other in {*PUBLIC[module]} - there:  # a package's, taken from a module of it on first use
        within = [file for name, file in FILES.items() if name.startswith(f"{module}.")]
        assert any(other in described(file) for file in within), f"{module}.{other}"


def test_every_public_module_is_on_the_api_page():
    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    on_page = set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
    assert on_page == {*PUBLIC} - {"cxr_study"}  # whose name `loaded_model` defines

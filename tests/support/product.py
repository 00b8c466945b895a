"""The modules of the product, and which of them a file imports."""

import ast
from pathlib import Path

SOURCES = ("components", "custom")
EXAMPLES = "custom/examples"


def product(root):
    """Files of the product -> their modules; a package's name is that of its `__init__`."""
    found = (file for source in SOURCES for file in (root / source).rglob("*.py"))
    files = sorted(file for file in found if not file.is_relative_to(root / EXAMPLES))
    names = (".".join(file.relative_to(root).with_suffix("").parts[1:]) for file in files)
    return {
        file.relative_to(root): name.removesuffix(".__init__")
        for file, name in zip(files, names, strict=True)
    }


def imports(file, modules):
    """Which of some modules a file imports anywhere, within functions as well."""
    names = set()
    for node in ast.walk(ast.parse(Path(file).read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file} imports relatively; write the whole name"
            within = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            names |= within or {node.module}
    return names & modules

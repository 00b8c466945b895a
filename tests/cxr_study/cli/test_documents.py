"""Commands and files that the documents name exist, with the options that they name."""

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
import typer

from cxr_study.cli import main as cli

ROOT = Path(__file__).parents[3]
DOCUMENTS = ("README.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md")))
WITH_COMMANDS = {
    "README.md",
    *(f"docs/how-to/{page}.md" for page in ("own-data", "join", "use-a-model", "run-studies")),
    *("docs/how-to/deploy.md", "docs/reference/jobs.md", "docs/tutorials/extend.md"),
}


def commands(document):
    """Words of each command of ours in a document's blocks; placeholders as a letter."""
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / document).read_text("utf-8"), re.M | re.S)
    lines = "\n".join(blocks).replace("\\\n", "").splitlines()
    split = [shlex.split(re.sub(r"<[^>]*>", "X", line), comments=True) for line in lines]
    return [words[1:] for words in split if words and words[0] == "surgagg"]


FOUND = [(document, words) for document in DOCUMENTS for words in commands(document)]


def test_there_are_some_in_each_of_these_documents():
    assert {document for document, _ in FOUND} >= WITH_COMMANDS


def parsed(words):
    """A command, and its options as it takes them."""
    command, rest = typer.main.get_command(cli.app), list(words)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    with command.make_context("surgagg", rest) as made:
        return command, made.params


@pytest.mark.parametrize("words", [pytest.param(words, id=shlex.join(words)) for _, words in FOUND])
def test_it_is_a_command_with_options_that_it_takes(words):
    assert not parsed(words)[0].hidden


def test_the_readmes_commands_can_be_run_one_after_the_other():
    found = [parsed(words) for words in commands("README.md")]
    new = Counter(made["out"] for command, made in found if "force" in made and "out" in made)
    assert len(new) > 5 and set(new.values()) == {1}


def test_the_python_files_that_documents_name_exist():
    """Except those of a named earlier commit, and those of other projects in related work."""
    folders = [ROOT / name for name in ("", "components", "components/surgical_aggregation")]
    others = "docs/explanation/related-work.md"
    pattern = re.compile(r"`([\w./-]+/\w+\.py)`(?! of\s+commit)")
    texts = {name: (ROOT / name).read_text("utf-8") for name in DOCUMENTS if name != others}
    named = {(name, path) for name, text in texts.items() for path in pattern.findall(text)}
    there = [*folders, ROOT / "custom"]
    missing = [one for one in named if not any((folder / one[1]).is_file() for folder in there)]
    assert len(named) > 40 and sorted(missing) == []


@pytest.mark.parametrize(
    "document", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("[cdjpt]*/**/*.md"))
)
def test_its_lines_fit_120_columns(document):
    lines = document.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if len(line) > 120]

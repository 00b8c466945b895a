"""What only a person can know of a model, in card.yaml beside it: the answers of every card."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from cxr_study.common.files import replace
from cxr_study.common.spelling import nearest
from cxr_study.common.yaml_files import read_yaml

FILE = "card.yaml"
"""Name of the file, beside the model."""

TO_FILL = "TO FILL IN"
"""Begins what is not answered yet, in bold."""

QUESTIONS: Mapping[str, str] = {
    "developer": "name and contact of who answers for the model",
    "licence": "of the weights; it depends on the data's terms of use",
    "release": 'stage and date of release, or "not released"',
    "clinical_purpose": "none so far, or which patients, setting and decision it is meant for",
    "oversight": "human oversight, and what happens with an output",
    "privacy": "which privacy filters and policies the sites used",
    "risk_level": "of the intended use, by the applicable regulation",
    "data": "sites, images and patients per split",
    "sources": "where and when images were taken, by which machines",
    "eligibility": "who is in the data, and who was left out",
    "demographics": "age, sex, ethnicity where they may be shared; see surgagg data audit",
    "labelling": "from reports or by readers, how many, and how uncertain labels were used",
    "ethics": "approvals, waivers, data use agreements",
    "consulted": "who was consulted",
    "performance": "AUROC with intervals on images that it was not trained on: surgagg report",
    "subgroups": "performance by sex, age, view, ethnicity and machine",
    "usefulness": "net benefit, effect on care, failures found in use; none is known",
    "upkeep": "who watches the model, and when it is withdrawn",
    "funding": "who paid, and who gains",
    "availability": "where they are",
    "publication": "in the paper on this model",
}
"""Key of the file -> what it asks for."""


def mark(key: str) -> str:
    """The place of an answer in a card."""
    return f"**{TO_FILL}: {QUESTIONS[key]}**"


def answered(card: str, folder: Path) -> str:
    """A card with the answers that lie in a model's folder.

    Raises:
        ValueError: The file cannot be read, or has an unknown key or a value that is no text.
    """
    file = folder / FILE
    answers = read_yaml(file, "the model card's answers", ValueError) if file.is_file() else {}
    for key, answer in answers.items():
        if key not in QUESTIONS:
            known = nearest(str(key), tuple(QUESTIONS))
            raise ValueError(f"{file}: no card asks for '{str(key)[:60]}'; {known}.")
        if not isinstance(answer, str):
            raise ValueError(f"{file}: {key!r} needs a text in quotes; got {answer!r:.60}.")
        if answer.strip():
            card = card.replace(mark(key), cell(answer.strip()))
    return card


def write_blank(folder: Path) -> None:
    """Write a file without answers into a model's folder, where there is none."""
    if not (folder / FILE).exists():
        asked = (f"# {what}\n{yaml.safe_dump({key: ''})}" for key, what in QUESTIONS.items())
        replace(folder / FILE, "".join(asked))


def cell(value: object) -> str:
    """A text in Markdown as it is, in one line: nothing in it is markup."""
    line = re.sub(r"\s+", " ", str(value))
    return html.escape(re.sub(r"([\\`*_{}\[\]#|])", r"\\\1", line), quote=False)

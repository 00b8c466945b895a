"""A model card, from a model's manifest and its run; the rest is marked to be filled in.

The card is written next to the model, with a file `card.yaml` for a person's answers, which every
later card of this model takes over.

Source:
    Mitchell et al., Model Cards for Model Reporting, FAT* 2019; the Applied Model Card of the
    Coalition for Health AI; Collins et al., TRIPOD+AI, BMJ 2024.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup

from cxr_study.common.files import atomic_write
from cxr_study.common.spelling import nearest
from cxr_study.common.wording import counted, format_rounds, join_names
from cxr_study.common.yaml_files import read_yaml
from cxr_study.evaluation.bootstrap import FEWEST
from cxr_study.evaluation.summary_json import PATIENTS, Summary
from cxr_study.jobs.methods import BATCH_NORM, METHODS, PAPERS
from cxr_study.models.calibration_file import CalibrationFile
from cxr_study.reports.page.html import environment
from surgical_aggregation.aggregation.batch_norm_strategy import kept_at_site, kinds_of
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.checkpoints.model_facts import CONTRACT, ClassTraining, ModelFacts
from surgical_aggregation.extras import PartError
from surgical_aggregation.wire import variables as wire

FILE = "model_card.md"
"""Name of the card, in the folder of the model."""

ANSWERS = "card.yaml"
"""Name of the file with a person's answers, in the folder of the model."""

TO_FILL = "TO FILL IN"
"""Beginning of every question that is not answered yet, in bold."""

QUESTIONS: Mapping[str, str] = yaml.safe_load(
    Path(__file__).with_name("questions.yaml").read_text(encoding="utf-8")
)
"""Key of `card.yaml` -> what it asks for."""

_RECIPE = (
    "strategy", "num_rounds", "epochs", "batch_size", "learning_rate", "gradient_clip",
    "augmentation", "body_weighting", "head_weighting", "server_optimizer", "proximal",
    "class_weighting", "focal_gamma", "pseudo_labels",
    "average_decay", "refit_model", "patience", "seed",
)  # fmt: skip
"""Settings of a job that the card lists as its recipe, in this order."""


@dataclass(frozen=True)
class CardSource:
    """What a card is written from.

    Attributes:
        name: Of the model, for the heading.
        facts: The model's manifest.
        summary: Numbers of its run; None: only the model is at hand.
        settings: Of the run's job, as far as it sets them.
        calibration: The model's calibration; None: it has none.
        trained: How it was trained, a sentence. Default: in a federation.
        filters: Of its run, see `job_results.filters`; None: not known.
        chest: Whether the images are known to be chest X-rays. Default False.
        best: Which of its run's models it is, in words; "": that of the best round.
        compared: Against which other models it was measured, and by how much it is ahead.
        file: Name of the model's file. Default "best.npz".
        body: What is averaged of the body, see `averaged_body`. Default "": not known.
    """

    name: str
    facts: ModelFacts
    summary: Summary | None = None
    settings: Mapping[str, Any] | None = None
    calibration: CalibrationFile | None = None
    trained: str = ""
    filters: Sequence[str] | None = None
    chest: bool = False
    best: str = ""
    compared: Sequence[str] = ()
    file: str = "best.npz"
    body: str = ""


def write(source: CardSource, folder: Path) -> Path:
    """Write a card into the model's folder, with the answers that are there.

    Args:
        source: What the card is written from.
        folder: Of the model. Where it has no file of answers, one with empty answers is written.

    Returns:
        The card.

    Raises:
        ValueError: The answers cannot be used; see `fill_in_answers`.
    """
    if not (folder / ANSWERS).exists():
        asked = (f"# {what}\n{yaml.safe_dump({key: ''})}" for key, what in QUESTIONS.items())
        atomic_write(folder / ANSWERS, "".join(asked))
    atomic_write(folder / FILE, fill_in_answers(markdown(source), folder))
    return folder / FILE


def markdown(source: CardSource) -> str:
    """Render the card as Markdown, with the metadata block that Hugging Face's hub reads.

    See huggingface.co/docs/hub/model-cards. The licence is "other" until a person has decided.

    Args:
        source: What is known of the model. Every value is escaped, so that none is markup.

    Returns:
        With a placeholder for each question that only a person can answer.
    """
    markup = environment(
        __package__,
        keep_trailing_newline=True,
        finalize=lambda value: value if isinstance(value, Markup) else escape_markdown(value),
    )
    markup.filters["trained"] = trained_by
    markup.globals["to_fill"] = lambda key: Markup(placeholder(key))
    summary, given = source.summary, source.settings or {}
    recipe = {name: given[name] for name in _RECIPE if name in given}
    if summary and "Preset" in summary.made:
        recipe = {"preset": summary.made["Preset"], **recipe}
    known, contributed = summary.contributions if summary else {}, source.facts.contributed
    if source.facts.site and summary:  # the manifest of a personal model has its own site alone
        contributed = {site: rounds for site, rounds in summary.contributed.items() if rounds}
    of_hub = [row for row in (summary.means if summary else ()) if row.auroc is not None]
    return markup.get_template("card.md.j2").render(
        source=source,
        facts=source.facts,
        summary=summary,
        results=[row for row in of_hub if (row.model, row.classes) == ("global", "all")],
        method=METHODS.get(summary.job) if summary else None,
        published=summary is not None and summary.job in PAPERS,
        recipe=recipe,
        batch_norm=BATCH_NORM,
        calibration=source.calibration,
        reliability=summary.calibration_groups() if summary else {},
        fewest=FEWEST,
        overlap=[w for w in (summary.warnings if summary else ()) if w.heading in PATIENTS],
        contributors=[f"{site} ({format_rounds(of)})" for site, of in contributed.items()],
        absent={site: of.reason for site, of in known.items() if site not in contributed},
        lacks=[CONTRACT[key] for key in source.facts.lacks],
    )


def trained_by(training: ClassTraining | None) -> str:
    """Write which sites trained a class in which rounds.

    Args:
        training: What the manifest has of the class; None: nothing.

    Returns:
        Such as `2 sites (a and b), rounds 0 to 4`, with why a class was never learned and from
        which model it was imported; `not known` where the manifest has nothing.
    """
    if training is None:
        return "not known"
    spans: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for span in training.rounds:
        spans.setdefault(span.sites, []).append((span.first, span.last))
    by = [
        format_rounds(rounds) + f" by {len(sites)}" * (len(spans) > 1)
        for sites, rounds in spans.items()
    ]
    names = f" ({join_names(training.sites)})" * bool(training.sites)
    text = counted(len(training.sites), "site") + names
    never = [f"never learned: {training.never_learned}"] if training.never_learned else []
    origin = training.imported or {}
    imported = [f"imported from model {origin['model_sha256'][:16]}…"] if origin else []
    if refit := origin.get("refit"):
        imported = [f"fitted on {counted(refit['images'], 'image')} of {refit['site']}", *imported]
    return "; ".join([", ".join([text, *by]), *never, *imported])


def averaged_body(checkpoint: Checkpoint) -> str:
    """Write what is averaged of a model's body, by the strategy that it was trained with.

    Returns:
        A clause; "" where no package here has the strategy.
    """
    manifest, body = checkpoint.manifest, wire.split(checkpoint.variables)[0]
    try:
        kept = kept_at_site(str(manifest.get("strategy")), body, kinds_of(manifest, body))
    except PartError:
        return ""
    but = f", except {len(kept)} of its {len(body)} variables, which no site sends" * bool(kept)
    return f"the body is averaged over all sites{but}"


def placeholder(key: str) -> str:
    """The text in a card that stands for an answer until a person gives it.

    Args:
        key: Of `QUESTIONS`.
    """
    return f"**{TO_FILL}: {QUESTIONS[key]}**"


def calibration_part(card: str) -> str:
    """The part of a card that follows from the model's calibration alone.

    Args:
        card: As `markdown` renders it without the summary of a run.
    """
    section = card.partition("\n### Calibration\n")[2]
    return section.partition("\n### Usefulness")[0].strip()


def fill_in_answers(card: str, folder: Path) -> str:
    """Replace the placeholders of a card by the answers in a model's folder.

    Args:
        card: Markdown with placeholders.
        folder: Of the model; without a file of answers the card stays as it is.

    Returns:
        The card; placeholders without an answer are left.

    Raises:
        ValueError: The file cannot be read, or has an unknown key or a value that is no text.
    """
    file = folder / ANSWERS
    answers = read_yaml(file, "the model card's answers", ValueError) if file.is_file() else {}
    for key, answer in answers.items():
        if key not in QUESTIONS:
            known = nearest(str(key), tuple(QUESTIONS))
            raise ValueError(f"{file}: no card asks for '{str(key)[:60]}'; {known}.")
        if not isinstance(answer, str):
            raise ValueError(f"{file}: {key!r} needs a text in quotes; got {answer!r:.60}.")
        if answer.strip():
            card = card.replace(placeholder(key), escape_markdown(answer.strip()))
    return card


def escape_markdown(value: object) -> str:
    """Write a value as plain text of Markdown, in one line.

    Args:
        value: Of any type, also from a foreign manifest; nothing in it becomes markup or HTML.
    """
    line = re.sub(r"\s+", " ", str(value))
    return html.escape(re.sub(r"([\\`*_{}\[\]#|])", r"\\\1", line), quote=False)

"""A model card, as far as a model's manifest and its run know; the rest is marked to be filled in.

Source:
    Mitchell et al., Model Cards for Model Reporting, FAT* 2019; the Applied Model Card of the
    Coalition for Health AI; Collins et al., TRIPOD+AI, BMJ 2024.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cxr_study.common.files import replace
from cxr_study.common.wording import counted, listed, rounds_listed
from cxr_study.evaluation.bootstrap import FEWEST
from cxr_study.evaluation.summary_json import SHARED_PATIENTS, Summary
from cxr_study.jobs.methods import METHODS
from cxr_study.models.prediction.calibration_file import CalibrationFile
from cxr_study.reports.card import card_answers
from cxr_study.reports.card.card_answers import cell
from cxr_study.reports.page import numbers
from surgical_aggregation.checkpoints.manifest import Spans
from surgical_aggregation.checkpoints.model_facts import CONTRACT, ClassTraining, ModelFacts

FILE = "model_card.md"
"""Name of the card, beside the model."""

_RECIPE = (
    "strategy", "num_rounds", "epochs", "batch_size", "learning_rate", "gradient_clip",
    "augmentation", "body_weighting", "head_weighting", "server_optimizer", "proximal",
    "class_weighting", "focal_gamma", "freeze_statistics_at", "pseudo_labels",
    "average_decay", "refit_model", "patience", "seed",
)  # fmt: skip


@dataclass(frozen=True)
class CardSource:
    """What a card is written from.

    Attributes:
        name: Of the model, for the heading.
        facts: The model's manifest.
        summary: Of its run; None: only the model is at hand.
        settings: Of the run's job, as far as it sets them.
        calibration: What lies beside the model; None: nothing.
        trained: How it was trained, a sentence. Default: in a federation.
        filters: Of its run, see `job_results.filters`; None: not known.
        chest: Whether the images are known to be chest X-rays. Default False.
        best: Which of its run's models it is, in words; "": that of the best round.
        compared: Against which other models it was measured, and by how much it is ahead.
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


def write(source: CardSource, folder: Path) -> Path:
    """Write a card into the model's folder, with the answers there (`card_answers`); its path.

    Raises:
        ValueError: The answers cannot be used.
    """
    card_answers.write_blank(folder)
    replace(folder / FILE, card_answers.answered(markdown(source), folder))
    return folder / FILE


def markdown(source: CardSource) -> str:
    """The card as Markdown, with the metadata block that Hugging Face's hub reads."""
    environment = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        loader=PackageLoader(__package__, ""),
        finalize=lambda value: value if isinstance(value, Markup) else cell(value),
    )
    environment.filters |= {
        "counted": counted, "listed": listed, "number": numbers.count,
        "auroc": lambda row: numbers.auroc(row, 3), "trained": trained_by,
        "interval": numbers.interval,
    }  # fmt: skip
    environment.globals |= {"to_fill": lambda key: Markup(card_answers.mark(key))}
    body = environment.get_template("card.md.j2").render(
        source=source,
        facts=source.facts,
        summary=source.summary,
        method=METHODS.get(source.summary.job) if source.summary else None,
        recipe=_recipe(source),
        calibration=source.calibration,
        reliability=source.summary.calibration_groups() if source.summary else {},
        fewest=FEWEST,
        shared_patients=SHARED_PATIENTS,
        contributors=[f"{s} ({rounds_listed(spans)})" for s, spans in _contributed(source).items()],
        absent=_absent(source),
        lacks=[CONTRACT[key] for key in source.facts.lacks],
    )
    block = yaml.safe_dump(metadata(source), sort_keys=False, allow_unicode=True)
    return f"---\n{block}---\n\n{body}"


def metadata(source: CardSource) -> dict[str, Any]:
    """The metadata block, see huggingface.co/docs/hub/model-cards.

    The licence is "other" until a person has decided.
    """
    chest = ["chest-x-ray", "medical-imaging"] if source.chest else []
    drawn = "drawn " if source.summary and source.summary.data == "phantom" else ""
    task, of = "image-classification", "Findings on chest X-rays" if chest else "Classes"
    results = [
        {
            "task": {"type": task, "name": of},
            "dataset": {
                "type": "phantom" if drawn else row.site,
                "name": f"{drawn}test split of {row.site}",
                "split": "test",
            },
            "metrics": [{"type": "roc_auc", "name": f"mean AUROC over {row.over}", "value": value}],
        }
        for row in (source.summary.means if source.summary else ())
        if row.model == "global" and row.classes == "all" and row.auroc is not None
        for value in [round(row.auroc, 4)]
    ]
    return {
        "language": "en",
        "license": "other",
        "license_name": "to-be-filled-in",
        "library_name": "keras",
        "pipeline_tag": task,
        "tags": [
            *chest, "multi-label-classification", "federated-learning", "surgical-aggregation",
            "research-only",
        ],
        "metrics": ["roc_auc"],
        **({"model-index": [{"name": source.name, "results": results}]} if results else {}),
    }  # fmt: skip


def trained_by(training: ClassTraining | None) -> str:
    """Who trained a class in which rounds, in words."""
    if training is None:
        return "not known"
    spans: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for span in training.rounds:
        spans.setdefault(span.sites, []).append((span.first, span.last))
    by = [
        rounds_listed(rounds) + f" by {len(sites)}" * (len(spans) > 1)
        for sites, rounds in spans.items()
    ]
    text = f"{counted(len(training.sites), 'site')} ({listed(training.sites)})"
    never = [f"never learned: {training.never_learned}"] if training.never_learned else []
    origin = training.imported or {}
    imported = [f"imported from model {origin['model_sha256'][:16]}…"] if origin else []
    return "; ".join([", ".join([text, *by]), *never, *imported])


def _contributed(source: CardSource) -> Mapping[str, Spans]:
    """Site -> its rounds; of a site's own model, whose manifest has its own alone, by its run."""
    if source.facts.site and source.summary:
        return {s: of.rounds for s, of in source.summary.contributions.items() if of.rounds}
    return source.facts.contributed


def _absent(source: CardSource) -> dict[str, str]:
    """Site of the job that is not in the model -> why, as far as it is known."""
    known = source.summary.contributions if source.summary else {}
    return {site: of.reason for site, of in known.items() if site not in _contributed(source)}


def _recipe(source: CardSource) -> dict[str, Any]:
    given = source.settings or {}
    made = source.summary.made if source.summary else {}
    preset = {"preset": made["Preset"]} if "Preset" in made else {}
    return preset | {name: given[name] for name in _RECIPE if name in given}

"""The settings of jobs: one table with their defaults, ranges, help texts and checks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cxr_study.common.spelling import nearest
from cxr_study.data.images.image_files import SIDES
from cxr_study.jobs.methods import CENSUS, EVALUATION, METHODS
from cxr_study.jobs.presets import JobError
from cxr_study.training.augmentation import AUGMENTATIONS
from cxr_study.training.backbones import BACKBONES, HIDDEN_UNITS
from surgical_aggregation.aggregation import weighting
from surgical_aggregation.aggregation.batch_norm_strategy import STRATEGIES, find, has_personal
from surgical_aggregation.aggregation.server_optimizer import OPTIMIZERS
from surgical_aggregation.aggregation.weighting import HEAD_WEIGHTINGS, SITE_WEIGHTINGS
from surgical_aggregation.site.training import training_options as training
from surgical_aggregation.wire.headers import NONE, TRACKERS

Side = Literal["server", "site", "both"]
"""Where a setting acts."""

_OFFERED = ("strategy", "weighting", "body_weighting", "head_weighting")
"""Settings that also accept the name of a part that an installed package offers."""

REFITTED = (NONE, "best", "last")
"""Values of the setting `refit_model`."""

TOO_FAST = 0.1
"""A server learning rate that is too high for FedAdam.

With it, mean AUROCs on the phantom were 0.46 and 0.50.
"""

FEW = 8  # up to this number of values, an error or a table lists all of them

_KINDS = {"boolean": "true or false", "integer": "a whole number", "number": "a number"}

_TRAINING = tuple(METHODS)
_MEASURING = (*_TRAINING, EVALUATION)
_ALL = (*_MEASURING, CENSUS)
_READABLE = tuple(name for name, method in METHODS.items() if not method.encrypted)
_ENCRYPTED = tuple(name for name, method in METHODS.items() if method.encrypted)
_COMMON = tuple(name for name, method in METHODS.items() if method.common_model)
_UNION = tuple(name for name, method in METHODS.items() if method.union_head)
_OPEN = tuple(name for name, method in METHODS.items() if method.other_classes == "unknown")


def _row(
    side: Side,
    default: object,
    line: str,
    methods: Sequence[str] = _TRAINING,
    *,
    words: Sequence[str] = (),
    **limits: float,
) -> Any:
    """A row of the table.

    Args:
        side: Where the setting acts.
        default: Its default, which also fixes its type.
        line: One line of help.
        methods: Names of the jobs that have it. Default: all that train.
        words: Texts that it can be; installed packages may add some if it is one of `_OFFERED`.
        limits: Smallest and largest value, `ge` and `le`; or one that it must stay below, `lt`.
    """
    facts: Any = {"side": side, "methods": tuple(methods), "words": tuple(words)}
    return Field(default, title=line, json_schema_extra=facts, **limits)  # type: ignore[call-overload]


_server, _site, _both = (partial(_row, side) for side in ("server", "site", "both"))


class JobSettings(BaseModel):
    """The settings of a job, typed and checked; immutable.

    A job has only some of these fields: `model_fields_set` names them. Further settings, which only
    a job folder defines, are kept as extra fields. Types are strict: an integer setting takes no
    text and no fraction.

    Raises:
        pydantic.ValidationError: A value has another type or is out of its range; `checked` turns
            this into a `JobError`.
        ValueError: A value is unknown, or contradicts another setting.
    """

    model_config = ConfigDict(
        strict=True, extra="allow", frozen=True, allow_inf_nan=False, protected_namespaces=()
    )

    # fmt: off
    num_rounds: int = _server(12, "of this job; 0: those that the job it continues lacks", ge=0)
    patience: int = _server(0, "rounds without a better model that end it; 0: none do", ge=0)
    min_clients: int = _server(0, "accepted results that a task needs; 0: of all sites", _ALL, ge=0)
    wait_seconds: int = _server(600, "for the others, once those are there", _ALL, ge=0)
    site_silence: int = _server(
        120, "seconds after which a silent site is gone", _MEASURING, ge=1)
    requests_per_second: int = _server(
        100, "of waiting sites together, for a task", _MEASURING, ge=1)
    check_only: bool = _server(
        False, "check whether the sites can participate, then end", _MEASURING)
    initial_body: str = _server("{$CXR_INITIAL_BODY}", "a checkpoint, or drawings")
    continues: str = _server("", "earlier job(s) there to go on from: id, or newest,older")
    body_weighting: str = _server(
        "mean", "weight of a site for the body", _READABLE, words=SITE_WEIGHTINGS)
    head_weighting: str = _server(
        "mean", "and for a column", _COMMON, words=HEAD_WEIGHTINGS)
    server_optimizer: str = _server(
        "none", "takes the mean change as a gradient", _READABLE, words=OPTIMIZERS)
    server_learning_rate: float = _server(
        0.0, "of it; 0: 1 of fedavgm, 0.003 of fedadam", _READABLE, ge=0)
    server_momentum: float = _server(0.9, "of it", _READABLE, ge=0, lt=1)
    average_decay: float = _server(
        0.0, "of an average of rounds; 0: none", _COMMON, ge=0, lt=1)
    refit_model: str = _server(
        NONE, "whose columns are refitted at the end", _COMMON, words=REFITTED)
    tracking: str = _server(
        "tensorboard", "where curves are kept", _MEASURING, words=(*TRACKERS, NONE))
    model: str = _server("{$CXR_MODEL}", "a checkpoint at the server", (EVALUATION,))
    model_of: str = _server("", "or the best one of an earlier job there, by its id", (EVALUATION,))
    strategy: str = _both("fedbn+", "what becomes of batch normalisation", words=STRATEGIES)
    weighting: str = _both("mean", "weight of a site", _ENCRYPTED, words=SITE_WEIGHTINGS)
    sites: str = _site("{$CXR_SITES}", "folder of <site>.yaml, at the site; or phantom", _ALL)
    backbone: str = _site("small_densenet", "of keras.applications, small_densenet or a package's",
                          _MEASURING, words=BACKBONES)
    image_size: int = _site(64, "side of the input in pixels", _MEASURING, ge=8, le=SIDES[-1])
    hidden: int = _site(0, "units between pooling and head; 0: none", _MEASURING, ge=0,
                        le=HIDDEN_UNITS[-1])
    union: str = _site("", "classes by comma; empty: the 20 of NIH and CheXpert", _UNION)
    batch_size: int = _site(64, "images", _MEASURING, ge=1)
    augmentation: str = _site("radiology", "of training images", words=tuple(AUGMENTATIONS))
    epochs: int = _site(1, "per round", ge=1)
    learning_rate: float = _site(1e-3, "of Adam; the papers, for real images: 5e-5", ge=0)
    warmup_epochs: int = _site(15, "of columns that the server does not have", ge=0)
    warmup_learning_rate: float = _site(5e-3, "of these", ge=0)
    gradient_clip: float = _site(0.0, "largest global norm of a gradient; 0: no limit", ge=0)
    proximal: float = _site(0.0, "FedProx's mu; 0: off", ge=0)
    class_weighting: str = _site(
        "none", "balanced: positives weigh as much as negatives", words=training.CLASS_WEIGHTINGS)
    focal_gamma: float = _site(0.0, "of the focal loss; 0: off", ge=0)
    pseudo_labels: str = _site(
        "none", "for classes that the site does not label", _OPEN, words=training.PSEUDO_LABELS)
    pseudo_labels_from: int = _site(4, "round from which they count", _OPEN, ge=0)
    mixed_precision: bool = _site(False, "float16 on a GPU, bfloat16 on CPUs with it")
    send: str = _site(
        "weights", "differences: for FLARE's privacy filters", _READABLE, words=training.SENT)
    report_counts: bool = _site(
        False, "tell the server labels per class; a site may forbid it", _MEASURING)
    report_features: bool = _site(
        True, "tell the server means of features; a site may forbid it", _READABLE)
    seed: int = _site(0, "of shuffling, augmentation and the initial head", ge=0, le=2**32 - 1)
    threads: int = _site(
        0, "of the CPU; 0: all cores, shared among simulated sites", _MEASURING, ge=0)
    # fmt: on

    @model_validator(mode="after")
    def _check_together(self) -> JobSettings:
        """Refuse what components would refuse only after the start of the job."""
        given = self.model_fields_set
        for name, _ in _FIELDS:
            value, words = getattr(self, name), _facts(name)["words"]
            if words and name not in _OFFERED and value not in words:
                need = nearest(value, words) if len(words) > FEW else f"it must be one of {words}"
                raise JobError(f"setting {name!r} has no value {value!r}; {need}.")
        if "strategy" not in given:
            return self
        find(self.strategy)
        if self.server_optimizer == "fedadam" and self.server_learning_rate >= TOO_FAST:
            raise JobError(
                "server_optimizer 'fedadam' moves every weight by about server_learning_rate a "
                f"round, which destroys the network from {TOO_FAST} upwards; got "
                f"{self.server_learning_rate}. Set server_learning_rate=0 for its default."
            )
        # With a union head every site has every column, most of them without a positive image.
        heads = SITE_WEIGHTINGS if "union" in given else HEAD_WEIGHTINGS
        weighting.find("weighting", self.weighting, SITE_WEIGHTINGS)
        weighting.find("body_weighting", self.body_weighting, SITE_WEIGHTINGS)
        weighting.find("head_weighting", self.head_weighting, heads)
        self._check_after_training(given)
        if self.head_weighting == "positives" and not self.report_counts:
            raise JobError(
                "head_weighting 'positives' needs the sites' counts; set report_counts=true as "
                "well."
            )
        return self

    def _check_after_training(self, given: Set[str]) -> None:
        """Refuse averages and refits of a model if the sites have no common model."""
        wanted = {"refit_model": self.refit_model != "none", "average_decay": self.average_decay}
        for name in (name for name, value in wanted.items() if value):
            if has_personal(self.strategy):
                raise JobError(
                    f"setting {name!r} needs one model for all sites; strategy {self.strategy!r} "
                    "gives each site its own. Use 'fedavg' or 'fedbn+', or leave it off."
                )
        if self.refit_model != "none" and self.focal_gamma:
            raise JobError(
                "columns are refitted to the plain cross-entropy; refit_model and focal_gamma "
                "cannot be combined. Leave one of them off."
            )


def checked(values: Mapping[str, Any]) -> JobSettings:
    """Check the settings of a job.

    Args:
        values: Setting -> value, of all settings that the job has.

    Raises:
        JobError: A value has another type or is out of its range; names the setting and the need.
        ValueError: A value is unknown, or contradicts another setting.
    """
    try:
        return JobSettings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "value_error":
            raise first["ctx"]["error"] from None
        name = str(first["loc"][0])
        raise JobError(f"setting {name!r} needs {_need(name)}; got {first['input']!r}.") from None


def defaults(method: str) -> dict[str, Any]:
    """Setting -> default, of the job with this name of `JOBS`; only settings that it has."""
    own = {name: field.default for name, field in _FIELDS if method in _facts(name)["methods"]}
    if method in METHODS:
        own["strategy"] = METHODS[method].strategy
    elif method == EVALUATION:
        own["min_clients"] = 1  # an evaluation at fewer sites is still valid
    return own


def acting_at(side: Side) -> frozenset[str]:
    """Names of the settings that act at a side, those that act at both included."""
    return frozenset(name for name, _ in _FIELDS if _facts(name)["side"] in (side, "both"))


def table() -> Iterator[tuple[Side, str, str, str, str]]:
    """Rows of the table of settings, for help and documents.

    Yields:
        Side, name, default, accepted values and a line of help of each setting, all as text.
    """
    for name, field in _FIELDS:
        facts = _facts(name)
        words = facts["words"] if len(facts["words"]) <= FEW else ()
        has, others = facts["methods"], [each for each in _TRAINING if each not in facts["methods"]]
        few_others = len(others) < len(has)
        which = f"; not {', '.join(others)}" if few_others else f"; {', '.join(has)} alone"
        default = json.dumps(field.default) if field.default != "" else "empty"
        more = ("or a package's",) if name in _OFFERED else ()
        need = ", ".join((*words, *more)) or _need(name)
        yield facts["side"], name, default.strip('"'), need, f"{field.title}{which * bool(others)}"


_FIELDS = JobSettings.model_fields.items()


def _facts(name: str) -> Any:
    return JobSettings.model_fields[name].json_schema_extra


def _need(name: str) -> str:
    schema = JobSettings.model_json_schema()["properties"][name]
    need = _KINDS.get(schema["type"], "a text")
    if "maximum" in schema:
        return f"{need} from {schema['minimum']} to {schema['maximum']}"
    if "exclusiveMaximum" in schema:
        return f"{need} from {schema['minimum']} to below {schema['exclusiveMaximum']}"
    return f"{need}, {schema['minimum']} or more" if "minimum" in schema else need

"""The settings of a job, each defined once: name, type, range, default and what it is for.

The job templates take defaults and comments from here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import fields
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cxr_study.common.spelling import nearest
from cxr_study.data.images.sides import SIDES
from cxr_study.jobs.command_line_settings import JobError
from cxr_study.training.augmentation import augmentation_ranges
from cxr_study.training.backbones import BACKBONES, HIDDEN_UNITS
from surgical_aggregation.aggregation import server_optimizer, weight_average, weighting
from surgical_aggregation.site.training.training_options import SENT, TrainingOptions
from surgical_aggregation.wire.headers import NONE, TRACKERS

WORDS = {
    "backbone": BACKBONES,
    "send": SENT,
    "tracking": (*TRACKERS, NONE),
    "refit_model": (NONE, "best", "last"),
}
"""Setting -> its values."""

TOO_FAST = 0.1
"""Rate of FedAdam at the server with which mean AUROCs on the phantom are 0.46 and 0.50."""

FEW = 8  # values that an error names all

_KINDS = {"boolean": "true or false", "integer": "a whole number", "number": "a number"}
_COLUMN = 43  # of the comments in a configuration


class JobSettings(BaseModel):
    """Settings of a job. Those that it does not have are not in `model_fields_set`.

    Settings that a job brings itself are kept as they are.
    """

    model_config = ConfigDict(
        strict=True, extra="allow", frozen=True, allow_inf_nan=False, protected_namespaces=()
    )

    # Of the server.
    num_rounds: int = Field(12, ge=0, title="of this job; 0: those missing in the run it continues")
    patience: int = Field(0, ge=0, title="stop after so many rounds without a better model; 0: no")
    min_clients: int = Field(0, ge=0, title="accepted results that a task needs; 0: of all sites")
    wait_seconds: int = Field(600, ge=0, title="for the others, once those are there")
    site_silence: int = Field(120, ge=1, title="seconds after which a silent site is gone")
    requests_per_second: int = Field(100, ge=1, title="of waiting sites together, for a task")
    check_only: bool = Field(False, title="ask the sites whether they can take part, then end")
    initial_body: str = Field("{$CXR_INITIAL_BODY}", title="a checkpoint, or drawings")
    continues: str = Field("", title="earlier job(s) here to go on from: id, or newest,older")
    body_weighting: str = Field("mean", title="mean | samples")
    head_weighting: str = Field("mean", title="mean | samples; in surgical also positives")
    server_optimizer: str = Field("none", title="none | fedavgm | fedadam")
    server_learning_rate: float = Field(0.0, title="0: its own; fedavgm 1, fedadam 0.003")
    server_momentum: float = 0.9
    average_decay: float = Field(0.0, title="of an average over late rounds; 0: none, 0.8: about 5")
    refit_model: str = Field("none", title="fit its columns anew at the end: none | best | last")
    tracking: str = Field("tensorboard", title="tensorboard | mlflow | none")
    model: str = Field("{$CXR_MODEL}", title="a checkpoint at the server")
    model_of: str = Field("", title="or the best one of an earlier job here, by its id")
    # Of server and sites.
    strategy: str = Field("fedbn+", title="fedavg | fedbn | fedbn+; the same at server and sites")
    weighting: str = Field("mean", title="mean | samples; the same at server and sites")
    # Of a site.
    sites: str = Field("{$CXR_SITES}", title="folder of <site>.yaml, at the site; or phantom")
    backbone: str = Field("small_densenet", title="of keras.applications, or small_densenet")
    image_size: int = Field(64, ge=8, le=SIDES[-1])
    hidden: int = Field(
        0, ge=0, le=HIDDEN_UNITS[-1], title="units between pooling and head; 0: none"
    )
    union: str = Field("", title='classes by comma; "": the 20 of NIH and CheXpert')
    batch_size: int = Field(64, ge=1)
    augmentation: str = Field("radiology", title="none | radiology | paper")
    epochs: int = Field(1, title="per round")
    learning_rate: float = Field(1e-3, title="the papers, for DenseNet121 on real images: 5e-5")
    warmup_epochs: int = 15
    warmup_learning_rate: float = 5e-3
    gradient_clip: float = Field(0.0, title="largest global norm of a gradient; 0: no limit")
    proximal: float = Field(0.0, title="FedProx's mu; 0: off")
    class_weighting: str = Field("none", title="none | balanced")
    focal_gamma: float = Field(0.0, title="of the focal loss; 0: off")
    freeze_statistics_at: int = Field(
        0, ge=0, title="round from which batch norm's statistics stay; 0: none"
    )
    pseudo_labels: str = Field("none", title="none | soft, for unlabelled classes")
    pseudo_labels_from: int = Field(4, ge=0, title="round from which they count")
    mixed_precision: bool = Field(False, title="float16 on a GPU, bfloat16 on CPUs with it")
    send: str = Field("weights", title="weights | differences (for FLARE's privacy filters)")
    report_counts: bool = Field(False, title="labels per class, to the server; a site may forbid")
    report_features: bool = Field(True, title="means of features, to the server; a site may forbid")
    seed: int = Field(0, ge=0)
    threads: int = Field(0, ge=0, title="0: all cores, shared among simulated sites")

    @model_validator(mode="after")
    def _check_together(self) -> JobSettings:
        """What the components would refuse after the start; of a training job all of it."""
        given = self.model_fields_set
        for name, values in WORDS.items():
            if getattr(self, name) not in values:
                got = getattr(self, name)
                if len(values) > FEW:
                    raise JobError(
                        f"setting {name!r} knows no {got!r}; {nearest(str(got), values)}."
                    )
                raise JobError(f"setting {name!r} must be one of {values}; got {got!r}.")
        if "strategy" not in given:
            return self
        options = {field.name for field in fields(TrainingOptions)} & given
        TrainingOptions(**{name: getattr(self, name) for name in options})
        augmentation_ranges(self.augmentation)
        server_optimizer.check(
            self.server_optimizer, self.server_learning_rate, self.server_momentum
        )
        if self.server_optimizer == "fedadam" and self.server_learning_rate >= TOO_FAST:
            raise JobError(
                "server_optimizer 'fedadam' moves every weight by about server_learning_rate a "
                f"round, and from {TOO_FAST} on destroys the network; got "
                f"{self.server_learning_rate}. Set server_learning_rate=0, for its own."
            )
        # Where sites share a union head, every site has every column, most without a positive.
        heads = weighting.SITE_WEIGHTINGS if "union" in given else weighting.HEAD_WEIGHTINGS
        weighting.find("weighting", self.weighting, weighting.SITE_WEIGHTINGS)
        weighting.find("body_weighting", self.body_weighting, weighting.SITE_WEIGHTINGS)
        weighting.find("head_weighting", self.head_weighting, heads)
        weight_average.check(self.average_decay)
        self._check_after_training(given)
        if self.head_weighting == "positives" and not self.report_counts:
            raise JobError(
                "head_weighting 'positives' needs the sites' counts; set report_counts=true as "
                "well."
            )
        return self

    def _check_after_training(self, given: Set[str]) -> None:
        """What is done with the finished model needs one that all sites have in common."""
        wanted = {"refit_model": self.refit_model != "none", "average_decay": self.average_decay}
        for name in (name for name, value in wanted.items() if value):
            if self.strategy == "fedbn":
                raise JobError(
                    f"setting {name!r} needs one model for all sites; strategy 'fedbn' leaves "
                    "every site one of its own. Take 'fedavg' or 'fedbn+', or leave it off."
                )
        if self.refit_model != "none" and self.focal_gamma:
            raise JobError(
                "columns are fitted anew to the plain cross-entropy; refit_model and focal_gamma "
                "do not go together. Leave one of them off."
            )


def checked(values: Mapping[str, Any]) -> JobSettings:
    """The settings of a job, typed.

    Raises:
        JobError: A value is of another type, or out of its range; says which.
        ValueError: A value is unknown, or does not go with another.
    """
    try:
        return JobSettings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "value_error":
            raise first["ctx"]["error"] from None
        name = str(first["loc"][0])
        raise JobError(f"setting {name!r} needs {_need(name)}; got {first['input']!r}.") from None


def lines(*names: str, **own: object) -> str:
    """Lines of a configuration that set settings to their defaults (or `own` ones), commented."""
    made = []
    for name in names:
        field = JobSettings.model_fields[name]
        line = f"{name} = {json.dumps(own.get(name, field.default))}"
        made.append(f"{line:{_COLUMN - 1}} # {field.title}" if field.title else line)
    return "\n".join(made)


def _need(name: str) -> str:
    schema = JobSettings.model_json_schema()["properties"][name]
    need = _KINDS.get(schema["type"], "a text")
    if "maximum" in schema:
        return f"{need} from {schema['minimum']} to {schema['maximum']}"
    return f"{need}, {schema['minimum']} or more" if "minimum" in schema else need

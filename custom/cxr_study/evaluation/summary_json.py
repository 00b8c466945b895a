"""What a run report is made from: the frozen form of `summary.json`."""

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from cxr_study.common.wording import Notice, counted

FORMAT: Literal[2] = 2
"""Number of the `summary.json` layout that this module reads and writes."""

SHARED_PATIENTS = "Patients at two sites."
"""Heading of the warning that patients may be in one site's training and another's test."""

Compared = Literal["local", "published", "before"]
"""What the global model is compared with; see `Model`."""

Model = Literal["global", "published", "before", "local"]
"""`global`: the federation's model; `published`: one of the method as published, with the same
recipe; `local`: one trained by that site alone for as many epochs."""

Data = Literal["phantom", "real", "elsewhere"]
"""Whose images; "elsewhere": at the sites, which measured the model themselves."""

Group = Literal["all", "labelled", "unlabelled"]
"""Classes of a mean: the union, those that the site labels itself, the others."""


@dataclass(frozen=True)
class Splits:
    """A count (of images or of patients) in each split."""

    train: int
    validation: int
    test: int

    @property
    def total(self) -> int:
        """The sum over the splits."""
        return self.train + self.validation + self.test


@dataclass(frozen=True)
class SiteData:
    """What a site brought to the run: the classes it labels, its images and its patients.

    The counts are None where the site's data are elsewhere.

    Attributes:
        training: Class that it labels -> positive and negative training images.
    """

    classes: tuple[str, ...]
    images: Splits | None
    patients: Splits | None
    training: dict[str, tuple[int, int]] | None = None


@dataclass(frozen=True)
class SiteRound:
    """One site in one round: the global model on its validation split, then its training.

    Attributes:
        validation_bce: Binary cross-entropy over the site's classes; None when not measured.
        validation_auroc: Mean AUROC over the site's classes; None when not defined.
        train_seconds: None when the site did not train, as after the last round.
        validate_seconds: None when not measured.
    """

    validation_bce: float | None
    validation_auroc: float | None = None
    train_seconds: float | None = None
    validate_seconds: float | None = None


@dataclass(frozen=True)
class Round:
    """The global model that started round `round`, measured at the sites that took part."""

    round: int
    mean_validation_bce: float | None
    sites: dict[str, SiteRound]


@dataclass(frozen=True)
class Best:
    """The round whose global model is the best, and its mean over the sites that measured it.

    Attributes:
        made: Of the finished rounds: "average" or "refit", see `candidates`; "": a round's model.
    """

    round: int
    mean_validation_bce: float
    made: Literal["", "average", "refit"] = ""


@dataclass(frozen=True)
class RefusedResult:
    """A result that the server refused whole, or that never came.

    Attributes:
        round: The round that was running; None for an evaluation.
    """

    round: int | None
    site: str
    reason: str
    task: str = "train"


@dataclass(frozen=True)
class Contribution:
    """In which rounds a site's result was averaged into the model.

    Attributes:
        rounds: Ranges, first and last included; of a continued run also those before it.
        reason: Why it is not in the first that it missed; "": it missed none, or it is not known.
    """

    rounds: tuple[tuple[int, int], ...]
    reason: str = ""


@dataclass(frozen=True)
class ClassAuroc:
    """One model's AUROC for one class on one site's test split.

    Attributes:
        site: Whose test split.
        labelled: Whether the site labels the class itself.
        auroc: None when not defined, like the ends of its 95 % interval, `low` and `high`; these
            also where the site itself measured, and kept its images' patients to itself.
        positives: Test images labelled 1; `negatives`: 0; None when the site keeps its counts.
        labels: `site`: the site's own labels; `truth`: complete labels kept for evaluation only.
        few: Whether it rests on fewer than `bootstrap.FEWEST` positive or negative patients (where
            the site measured: images), and so has no interval and no part in a mean.
    """

    model: Model
    site: str
    class_name: str
    labelled: bool
    auroc: float | None
    low: float | None
    high: float | None
    positives: int | None
    negatives: int | None
    labels: Literal["site", "truth"]
    few: bool = False


@dataclass(frozen=True)
class MeanAuroc:
    """One model's mean AUROC over a group of classes on one site's test split.

    Attributes:
        site: Whose test split.
        auroc: Mean over the classes whose AUROC is defined and not of `few` patients; None when
            there is none. `low` and `high` are the ends of its 95 % interval, None when not
            defined.
        defined: How many classes the mean is taken over.
        of: How many classes the group has.
        few: How many classes are left out for their few patients.
        with_few: Mean over these too; None when there are none.
    """

    model: Model
    site: str
    classes: Group
    auroc: float | None
    low: float | None
    high: float | None
    defined: int
    of: int
    few: int = 0
    with_few: float | None = None

    @property
    def over(self) -> str:
        """Over how many classes it is, and what it is with those of too few patients."""
        text = f"{self.defined} of {counted(self.of, 'class', 'classes')}"
        if self.with_few is None:
            return text
        return f"{text} ({self.with_few:.3f} with {self.few} of too few patients)"


@dataclass(frozen=True)
class Difference:
    """How far the global model is ahead of another one, on some of a site's classes.

    Attributes:
        site: Whose test split, and whose local model.
        auroc: Of the means over the classes; `low` and `high` are the ends of its 95 % interval,
            by patient and paired, None when not defined.
        few: How many classes are left out for their few patients.
        against: "local", "published", or "before": the model that a continued run started from.
        classes: Which of those that both models have.
    """

    site: str
    auroc: float
    low: float | None
    high: float | None
    few: int = 0
    against: Compared = "local"
    classes: Group = "labelled"


@dataclass(frozen=True)
class SubgroupAuroc:
    """The global model on a subgroup of one site's test split; see `subgroup_scores.by_subgroup`.

    Attributes:
        kind: "sex", "age" or "view".
        auroc: Mean over the `classes` that the subgroup defines; None: it defines none.
        compared_auroc: Mean over the `compared` classes that every subgroup of the kind has enough
            images of; None: there is no such class.
    """

    site: str
    kind: str
    subgroup: str
    images: int
    patients: int
    classes: int
    auroc: float | None
    compared: int
    compared_auroc: float | None


@dataclass(frozen=True)
class SiteCalibration:
    """How far the global model's probabilities of one class are off on one site's test split.

    Attributes:
        predictions: With a label.
        error: Expected calibration error (see `calibration`); None: there is no prediction.
        class_name: "" in older summaries, which pool the classes that the site labels.
        labelled: Whether the site labels the class itself.
        output: Mean of the probabilities.
        prevalence: Share of the labels that is positive.
    """

    site: str
    predictions: int
    error: float | None
    class_name: str = ""
    labelled: bool = True
    output: float | None = None
    prevalence: float | None = None


@dataclass(frozen=True)
class Summary:
    """Everything a run report says, except the example pictures.

    Attributes:
        job: Name of the job (the method) that ran.
        note: One sentence on what the data can and cannot show; may be empty.
        image_size: Height and width of the model's input, in pixels; None: not known.
        num_rounds: Rounds that the model has gone through; of a continued run also those before
            it, like `planned_rounds` (older summaries: its own).
        best: The round of the reported model.
        trained_by: Class -> names of the sites whose columns went into it.
        rounds: In order; the last may be the final model, on which nobody trained.
        refusals: Results that the server refused, or that never came.
        stopped_early: Whether the run ended because no better model came.
        personal: Whether every site has a model of its own, which then stands for the global one.
        planned_rounds: Rounds that were asked for; None where that is not known.
        warnings: See `run_warnings.warnings_of`.
        made: How it was made: date, code, initial body, ...; what a page shows beside its figures.
        settings: The job's, as texts.
        contributions: Site of the job, or of one that it continues -> its rounds; empty in older
            summaries.
    """

    # How pydantic reads it and what is in it.
    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "strict": True,
        "extra": "forbid",
        "allow_inf_nan": False,
    }

    title: str
    job: str
    data: Data
    note: str
    version: str
    backbone: str
    image_size: int | None
    seed: int
    num_rounds: int
    wall_seconds: float
    best: Best
    union: tuple[str, ...]
    sites: dict[str, SiteData]
    trained_by: dict[str, tuple[str, ...]]
    rounds: tuple[Round, ...]
    refusals: tuple[RefusedResult, ...] = ()
    test: tuple[ClassAuroc, ...] = ()
    means: tuple[MeanAuroc, ...] = ()
    differences: tuple[Difference, ...] = ()
    subgroups: tuple[SubgroupAuroc, ...] = ()
    calibration: tuple[SiteCalibration, ...] = ()
    stopped_early: bool = False
    personal: bool = False
    planned_rounds: int | None = None
    warnings: tuple[Notice, ...] = ()
    made: dict[str, str] = dataclasses.field(default_factory=dict)
    settings: dict[str, str] = dataclasses.field(default_factory=dict)
    contributions: dict[str, Contribution] = dataclasses.field(default_factory=dict)
    format: Literal[2] = FORMAT

    def calibration_groups(self) -> "dict[tuple[str, bool], list[SiteCalibration]]":
        """Calibration by site and whether it labels the classes, the largest error first."""
        groups: dict[tuple[str, bool], list[SiteCalibration]] = {}
        for row in sorted(self.calibration, key=lambda row: (row.site, -(row.error or 0))):
            if row.class_name:  # older summaries pool the classes
                groups.setdefault((row.site, row.labelled), []).append(row)
        return dict(sorted(groups.items(), key=lambda group: (group[0][0], not group[0][1])))

    def to_json(self) -> str:
        """Write the summary as JSON text, checked as `from_json` checks it.

        Raises:
            ValueError: A value is of the wrong kind or not finite, or a site or class is unknown.
        """
        plain = dataclasses.asdict(self)
        text = json.dumps(plain, indent=1, default=lambda number: number.item())  # NumPy's
        _checked(text)
        return text + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Summary":
        """Read a summary from JSON text.

        Raises:
            ValueError: The text is not JSON, or not of the documented form; names the place.
        """
        return _checked(text)


def _checked(text: str) -> Summary:
    """Read a summary and check that every site and class named is known."""
    from pydantic import TypeAdapter, ValidationError  # here, for every command imports this

    try:
        summary = TypeAdapter(Summary).validate_json(text)
    except ValidationError as errors:
        error = errors.errors(include_url=False)[0]
        place = "".join(f"[{part}]" if type(part) is int else f".{part}" for part in error["loc"])
        shown = repr(error["input"])
        shown = shown if len(shown) <= 60 else shown[:59] + "…"
        raise ValueError(
            f"summary{place}: {error['msg']}; got {shown}. Run the job again, or read it with the "
            "version of cxr_study that wrote it."
        ) from None
    known: dict[str, Collection[str]] = {"site": summary.sites, "class_name": summary.union}
    named = [(f"test[{i}]", n, getattr(r, n)) for i, r in enumerate(summary.test) for n in known]
    named += [(f"means[{i}]", "site", row.site) for i, row in enumerate(summary.means)]
    named += [
        (f"rounds[{i}]", "site", s) for i, row in enumerate(summary.rounds) for s in row.sites
    ]
    for place, kind, name in named:
        if name not in known[kind]:
            raise ValueError(f"{place}.{kind} is {name!r}; the summary has {list(known[kind])}.")
    return summary

"""The data of a run report, and their file format `summary.json`.

All fields are checked when a file is read or written.
"""

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from cxr_study.common.wording import Notice, counted

__all__ = ["Summary"]

FORMAT: Literal[2] = 2
"""Number of the `summary.json` layout that this module reads and writes."""

SHARED_PATIENTS = "Patients at two sites."
SEEN_PATIENTS = "Tested on patients that it was trained on."
NO_PATIENTS = "Each image counts as a patient."
PATIENTS = (SHARED_PATIENTS, SEEN_PATIENTS, NO_PATIENTS)
"""Headings of the warnings that patients may be both in a training and in a test split."""

Compared = Literal["local", "published", "before"]
"""Model that the global model is compared with; see `Model`."""

Model = Literal["global", "published", "before", "local"]
"""`global`: the federation's model; `published`: the method as published, with the same recipe;
`before`: the model that a continued run started from; `local`: trained by that site alone for as
many epochs."""

Data = Literal["phantom", "real", "elsewhere"]
"""Origin of the images; "elsewhere": on the sites' machines; the sites measured the model."""

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
    """A site's classes and data. Counts are None if the data are on another machine.

    Attributes:
        classes: Classes that the site labels.
        images: Number of images per split.
        patients: Number of patients per split.
        training: Class -> numbers of positive and negative training images.
    """

    classes: tuple[str, ...]
    images: Splits | None
    patients: Splits | None
    training: dict[str, tuple[int, int]] | None = None


@dataclass(frozen=True)
class SiteRound:
    """One site in one round: the global model on its validation split, then the site's training.

    Attributes:
        validation_bce: Binary cross-entropy over the site's classes; None: not measured.
        validation_auroc: Mean AUROC over the site's classes; None: not defined.
        train_seconds: Duration of the training; None: the site did not train, as after the last
            round.
        validate_seconds: Duration of the validation; None: not measured.
    """

    validation_bce: float | None
    validation_auroc: float | None = None
    train_seconds: float | None = None
    validate_seconds: float | None = None


@dataclass(frozen=True)
class Round:
    """One round: the global model that started it, validated at the participating sites.

    Attributes:
        round: Number of the round, from 0.
        mean_validation_bce: Mean over the sites that measured it; None: none did.
        sites: Site -> its results.
    """

    round: int
    mean_validation_bce: float | None
    sites: dict[str, SiteRound]


@dataclass(frozen=True)
class Best:
    """The best global model.

    Attributes:
        round: The round that it started.
        mean_validation_bce: Its validation loss, the mean over the sites that measured it.
        made: How it was made from the completed rounds: "average" or "refit", see `candidates`; "":
            it is the model of a round.
    """

    round: int
    mean_validation_bce: float
    made: Literal["", "average", "refit"] = ""


@dataclass(frozen=True)
class RefusedResult:
    """A result that the server refused, or never received.

    Attributes:
        round: The round at the time; None: it was an evaluation.
        site: Whose result; "all": the round was dropped.
        reason: Why it was refused or is missing.
        task: Task of the result. Default "train".
    """

    round: int | None
    site: str
    reason: str
    task: str = "train"


@dataclass(frozen=True)
class Contribution:
    """The rounds in which a site's result was averaged, also after the reported model.

    Attributes:
        rounds: Ranges, first and last included; in a continued run also those of earlier runs.
        reason: Why the site missed the first round that it missed; "": it missed none, or the
            reason is not known.
    """

    rounds: tuple[tuple[int, int], ...]
    reason: str = ""


@dataclass(frozen=True)
class ClassAuroc:
    """One model's AUROC for one class on one site's test split.

    Attributes:
        model: Which model.
        site: Site whose test split it is.
        class_name: Name of the class.
        labelled: Whether the site labels the class itself.
        auroc: None: not defined.
        low: Lower end of its 95 % interval by patient; None: not defined, or the site measured the
            AUROC itself and did not send its images' patients.
        high: Upper end; None likewise.
        positives: Number of test images labelled 1; None: the site does not send its counts.
        negatives: Number of test images labelled 0; None likewise.
        labels: `site`: the site's own labels; `truth`: complete labels kept for evaluation only.
        few: Whether there are fewer than `bootstrap.FEWEST` positive or negative patients (images,
            if the site measured it), so that it has no interval and is left out of means.
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

    @property
    def left_out(self) -> str:
        """Why it is in no mean: why it is not defined, or few patients; "": it is in some."""
        if self.auroc is not None:
            return "too few patients" * self.few
        if self.positives is None or self.negatives is None:
            return "the site keeps the reason to itself"
        return {
            (False, False): "the test split has no label of it",
            (False, True): "no positive image in the test split",
            (True, False): "no negative image in the test split",
            (True, True): "the model has no such class",
        }[self.positives > 0, self.negatives > 0]


@dataclass(frozen=True)
class MeanAuroc:
    """One model's mean AUROC over a group of classes on one site's test split.

    Attributes:
        model: Which model.
        site: Site whose test split it is.
        classes: Which group of classes.
        auroc: Mean over the classes whose AUROC is defined, without those with few patients; None:
            there is no such class.
        low: Lower end of its 95 % interval; None: not defined.
        high: Upper end; None likewise.
        defined: Number of classes in the mean.
        of: Number of classes in the group.
        few: Number of classes that are left out because of few patients.
        with_few: Mean with these classes; None: there are none.
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
        """Number of classes in the mean, and the mean with those of too few patients, as text."""
        text = f"{self.defined} of {counted(self.of, 'class', 'classes')}"
        if self.with_few is None:
            return text
        return f"{text} ({self.with_few:.3f} with {self.few} of too few patients)"


@dataclass(frozen=True)
class Difference:
    """Mean AUROC of the global model minus that of another model, over a group of classes.

    Attributes:
        site: Site whose test split, and whose local model, it is.
        auroc: The difference of the means.
        low: Lower end of its 95 % interval, paired and by patient; None: not defined.
        high: Upper end; None likewise.
        few: Number of classes that are left out because of few patients.
        against: The other model.
        classes: Which group of the classes that both models have.
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
    """AUROC of the global model in a subgroup of one site's test split; see `subgroup_scores`.

    Attributes:
        site: Site whose test split it is.
        kind: "sex", "age" or "view".
        subgroup: Such as "F", "40-59" or "PA".
        images: Number of images in the subgroup.
        patients: Number of patients in the subgroup.
        classes: Number of classes whose AUROC is defined in the subgroup.
        auroc: Mean over these; None: there is none.
        compared: Number of classes with enough images in every subgroup of the kind.
        compared_auroc: Mean over these; None: there is none.
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
    """Calibration of the global model's probabilities of one class on one site's test split.

    Attributes:
        site: Site whose test split it is.
        predictions: Number of predictions with a label.
        error: Expected calibration error (see `calibration_error`); None: there is no prediction.
        class_name: Name of the class.
        labelled: Whether the site labels the class itself.
        output: Mean of the probabilities; None: there is no prediction.
        prevalence: Share of the labels that is positive; None likewise.
    """

    site: str
    predictions: int
    error: float | None
    class_name: str
    labelled: bool
    output: float | None
    prevalence: float | None


@dataclass(frozen=True)
class Summary:
    """All content of a run report, except the example pictures.

    Attributes:
        title: Heading of the report.
        job: Name of the job (the method).
        data: Origin of the images.
        note: One sentence on what the data can and cannot show; may be empty.
        version: Of this software.
        backbone: The network's.
        image_size: Height and width of the network's input, pixels; None: not known.
        seed: The job's setting `seed`.
        num_rounds: Number of rounds that the model has gone through; in a continued run with those
            of earlier runs.
        wall_seconds: Duration of the run's jobs.
        best: The reported model.
        union: Classes of all sites.
        sites: Site -> its data.
        trained_by: Class -> names of the sites whose columns are averaged into it.
        rounds: In order; the last may be the final model, which no site trained further.
        refusals: Results that the server refused, or never received.
        test: AUROC per model, site and class.
        means: Mean AUROC per model, site and group of classes.
        differences: The global model compared with each other model, per site.
        subgroups: AUROC of the global model by sex, age and view, per site.
        calibration: Calibration of the global model, per site and class.
        stopped_early: Whether the run stopped early, without a better model for some rounds.
        personal: Whether every site has a personal model, which is then reported as the global one.
        planned_rounds: Number of rounds that were requested; None: not known.
        warnings: See `run_warnings.warnings_of`.
        made: Provenance: date, code, initial body, ...; shown next to the figures.
        settings: The job's settings, as text.
        contributions: Site of the job, or of one that it continues -> its rounds.
        format: Number of the layout.

    Example:
        >>> Summary.from_json(Path("report/summary.json").read_text())  # doctest: +SKIP
    """

    # Pydantic checks types strictly, and refuses unknown keys and numbers that are not finite.
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

    @property
    def contributed(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """Site -> of its `contributions`, the rounds that are in the reported model."""
        end, given = self.best.round, self.contributions.items()
        return {s: tuple((a, min(b, end - 1)) for a, b in of.rounds if a < end) for s, of in given}

    def of_site(self, site: str) -> "Summary":
        """A copy with the results on one site's test split alone, as for its personal model.

        Args:
            site: Name of the site.
        """
        own: dict[str, Any] = {}
        for kind in ("test", "means", "differences", "subgroups", "calibration"):
            own[kind] = tuple(row for row in getattr(self, kind) if row.site == site)
        return dataclasses.replace(self, **own)

    def calibration_groups(self) -> "dict[tuple[str, bool], list[SiteCalibration]]":
        """Group the calibration rows for display.

        Returns:
            (site, whether it labels the classes) -> rows, largest error first; labelled classes
            come before the others.
        """
        groups: dict[tuple[str, bool], list[SiteCalibration]] = {}
        for row in sorted(self.calibration, key=lambda row: (row.site, -(row.error or 0))):
            groups.setdefault((row.site, row.labelled), []).append(row)
        return dict(sorted(groups.items(), key=lambda group: (group[0][0], not group[0][1])))

    def to_json(self) -> str:
        """Format the summary as JSON.

        Raises:
            ValueError: A value has the wrong type or is not finite, or a site or class is unknown.
        """
        plain = dataclasses.asdict(self)
        text = json.dumps(plain, indent=1, default=lambda number: number.item())  # NumPy's
        _checked(text)
        return text + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Summary":
        """Parse and check a summary.

        Args:
            text: Content of a `summary.json` of format 2.

        Raises:
            ValueError: The text is not JSON, or not of this format; the message names the field.
        """
        return _checked(text)


def _checked(text: str) -> Summary:
    """Parse a summary, and check that the sites and classes in it are those of the run."""
    from pydantic import TypeAdapter, ValidationError  # slow; every command imports this module

    try:
        summary = TypeAdapter(Summary).validate_json(text)
    except ValidationError as errors:
        error = errors.errors(include_url=False)[0]
        place = "".join(f"[{part}]" if type(part) is int else f".{part}" for part in error["loc"])
        raise ValueError(
            f"summary{place}: {error['msg']}; got {error['input']!r:.60}. Run the job again, or "
            "read it with the version of cxr_study that wrote it."
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

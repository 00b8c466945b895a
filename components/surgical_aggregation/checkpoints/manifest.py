"""A model's manifest: facts about the model, as an immutable mapping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from types import GenericAlias, MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, create_model

from surgical_aggregation import __version__
from surgical_aggregation.aggregation.batch_norm_strategy import Strategy, has_personal
from surgical_aggregation.aggregation.one_sided import LABELLED
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.wire.headers import BEST_OF_ROUNDS, CANDIDATE

Spans = tuple[tuple[int, int], ...]
"""Rounds as ordered ranges, first and last included."""


@dataclass(frozen=True, eq=False)
class Manifest(Mapping[str, Any]):
    """Facts about a model by name, JSON-serialisable.

    Every model has `head_features` (number of features of a column) and `variable_kinds` (may be
    missing if another program wrote the file). A run adds

        classes              class -> sites that trained it, rounds, and the last round
        round                number of rounds made
        planned_rounds       number of rounds made and planned
        job, history         id of the job; earlier jobs, oldest first
        contributed          site -> rounds in which its result was averaged
        best, best_of_rounds record of the best model, see `headers.BEST`; without candidates
        not_compared         later rounds whose models could not be compared with best_of_rounds
        removed              removed classes, see `class_changes.remove`
        initial_body_sha256  digest of the initial body
    """

    facts: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.facts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.facts)

    def __len__(self) -> int:
        return len(self.facts)

    def with_facts(self, **facts: Any) -> Manifest:
        """A copy with added or replaced facts."""
        return Manifest({**self.facts, **facts})

    def without(self, *names: str) -> Manifest:
        """A copy without some facts."""
        return Manifest({name: fact for name, fact in self.facts.items() if name not in names})

    def with_best_of_rounds(self, record: Mapping[str, Any] | None) -> Manifest:
        """A copy with the record of the best of the rounds' models; None: without one."""
        rest = self.without(BEST_OF_ROUNDS)
        return rest if record is None else rest.with_facts(**{BEST_OF_ROUNDS: record})

    def with_strategy(self, strategy: str | Strategy) -> Manifest:
        """A copy for a model trained with a strategy; see `aggregation.batch_norm_strategy`."""
        if isinstance(strategy, str):
            return self.with_facts(strategy=strategy)
        kind = type(strategy)
        name = f"{kind.__module__}.{kind.__qualname__}"
        return self.with_facts(strategy=name, personal=has_personal(strategy))

    @property
    def has_personal_body(self) -> bool:
        """Whether the strategy gives every site a personal body."""
        return bool(self.get("personal")) or has_personal(str(self.get("strategy", "")))

    def started_by(self, job: str) -> Manifest:
        """Manifest of the model that `job` starts from, given that of its checkpoint.

        If a job wrote the checkpoint (it has the key `job`), that run is resumed: rounds continue,
        and the earlier job is appended to the history: [{"job", "rounds": [first, one after the
        last]}]. Otherwise it is a fresh start at round 0 without contributions. The record of the
        best model and the key `headers.CANDIDATE` are dropped.

        Example:
            >>> Manifest({"job": "a", "round": 3}).started_by("b")["history"]
            [{'job': 'a', 'rounds': [0, 3]}]
        """
        started = self.without("best", CANDIDATE).with_facts(job=job)
        if "job" not in self:
            return started.with_facts(round=0, contributed={})
        earlier = {"job": self["job"], "rounds": [self.first_round, self.round]}
        return started.with_facts(
            contributed=contributed(self),
            round=self.round,
            history=[*self.get("history", []), earlier],
        )

    @property
    def round(self) -> int:
        """Number of rounds made."""
        return int(self.get("round", 0))

    @property
    def first_round(self) -> int:
        """The first round of the job that wrote the checkpoint."""
        history = self.get("history", [])
        return int(history[-1]["rounds"][1]) if history else 0

    @property
    def missing_rounds(self) -> int:
        """Number of planned rounds that the run has not made; 0 if it stopped early."""
        return int(self.get("planned_rounds", self.round)) - self.round

    @property
    def continued(self) -> dict[str, Any] | None:
        """What a job resumes: {"jobs": newest first, "round"}; None: a fresh run."""
        if not (history := self.get("history")):
            return None
        jobs = [earlier["job"] for earlier in reversed(history)]
        return {"jobs": jobs, "round": history[-1]["rounds"][1]}

    def with_round(
        self,
        round_: int,
        accepted: Mapping[str, SiteResult],
        versions: Mapping[str, Mapping[str, str]],
    ) -> Manifest:
        """Manifest of the model that a round made, without what was measured of the one before.

        Args:
            round_: The round.
            accepted: Site -> its result, which was averaged.
            versions: Site -> package -> version.
        """
        before, sites = self.get("classes", {}), dict(contributed(self))
        now = {}
        for name in {name for result in accepted.values() for name in result.columns}:
            by_site = {
                site: sent.lacking for site, sent in accepted.items() if name in sent.columns
            }
            lacking = {site: lacks[name] for site, lacks in by_site.items() if name in lacks}
            now[name] = with_round(before.get(name, {}), round_, [*by_site], lacking)
        for site in accepted:
            sites[site] = _with_span(sites.get(site, ()), round_, round_)
        declared = {site: dict(versions[site]) for site in accepted if site in versions}
        made = self.without("validation", "features", CANDIDATE).with_facts(
            round=round_ + 1,
            versions={**self.get("versions", {}), **declared},
            classes=dict(sorted({**before, **now}.items())),
            contributed=dict(sorted(sites.items())),
        )
        if removed := self.get("removed"):  # until a site trains them again
            kept = {name: facts for name, facts in removed.items() if name not in now}
            made = made.with_facts(removed=kept)
        return made


def made_now() -> dict[str, str]:
    """Facts of a model that is written now: date (UTC) and version of this software.

    Not the time of day, so that a run and its repetition on the same day give equal files.
    """
    return {"created": datetime.now(timezone.utc).date().isoformat(), "version": __version__}


def with_round(
    facts: Mapping[str, Any],
    round_: int,
    sites: Sequence[str],
    lacking: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Facts about a class (an entry of a manifest's `classes`) after a round that trained it.

    Args:
        facts: The facts before the round.
        round_: The round.
        sites: Sites that sent its column.
        lacking: Site -> kind of image that it lacks, see `one_sided.lacking`; one without a label
            did not train the class, and of one that could teach it before nothing is recorded.
            Default: none.

    Example:
        >>> with_round({"sites": ["a"], "last_round": 0, "rounds": [[0, 0, ["a"]]]}, 1, ["a"])
        {'sites': ['a'], 'last_round': 1, 'rounds': [[0, 1, ['a']]]}
    """
    trained = sorted(site for site in sites if lacking.get(site) != LABELLED)
    rounds = [list(each) for each in facts.get("rounds", ())]
    if rounds and rounds[-1][1:] == [round_ - 1, trained]:
        rounds[-1][1] = round_
    elif trained:
        rounds.append([round_, round_, trained])
    before = facts.get("lacking", {})
    taught = {*facts.get("sites", ())} - before.keys()
    lacks = {site: kind for site, kind in before.items() if site not in sites}
    lacks |= {site: kind for site, kind in lacking.items() if site not in taught}
    return {
        **{name: value for name, value in facts.items() if name != "lacking"},
        "sites": sorted({*facts.get("sites", ()), *trained}),
        "last_round": round_ if trained else facts.get("last_round"),
        "rounds": rounds,
        **({"lacking": dict(sorted(lacks.items()))} if lacks else {}),
    }


def before_round(facts: Mapping[str, Any], round_: int) -> dict[str, Any]:
    """Facts about a class as they were before a round; see `with_round`."""
    rounds = [[a, min(b, round_ - 1), sites] for a, b, sites in facts["rounds"] if a < round_]
    return {**facts, "last_round": rounds[-1][1], "rounds": rounds} if rounds else {}


def contributed(manifest: Mapping[str, Any]) -> dict[str, Spans]:
    """Site -> rounds in which its result was averaged; empty where the manifest does not state it.

    Example:
        >>> contributed({"contributed": {"a": [[0, 3]]}})
        {'a': ((0, 3),)}
    """
    given = manifest.get("contributed", {})
    return {site: tuple((first, last) for first, last in spans) for site, spans in given.items()}


def _with_span(spans: Spans, first: int, last: int) -> Spans:
    """Add a range that begins no earlier; never expanded, as a file may have any number."""
    if spans and first <= spans[-1][1] + 1:
        return (*spans[:-1], (spans[-1][0], max(last, spans[-1][1])))
    return (*spans, (first, last))


def rounds_in(spans: Iterable[tuple[int, int]]) -> set[int]:
    """Expand ranges into rounds."""
    return {number for first, last in spans for number in range(first, last + 1)}


def spans(rounds: Iterable[int]) -> Spans:
    """Rounds as ranges.

    Example:
        >>> spans([3, 0, 1])
        ((0, 1), (3, 3))
    """
    found: Spans = ()
    for each in sorted(rounds):
        found = _with_span(found, each, each)
    return found


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("printable text in one line")
    return text


Text = Annotated[str, AfterValidator(_printable)]
Count = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Names = list[Text]


def _facts(needs: dict[str, Any], has: dict[str, Any]) -> Any:
    """Model of facts by name, some required; further facts are allowed."""
    fields: Any = {**needs, **{name: (form, None) for name, form in has.items()}}
    return create_model("facts", **fields)


_REFIT = _facts({"site": Text, "images": Count}, {})
_CLASS = _facts({}, {
    "sites": Names, "last_round": Count | None, "rounds": list[tuple[Count, Count, Names]],
    "lacking": dict[Text, Literal["positive", "negative", "labelled"]],
    "imported": _facts({"model_sha256": Text}, {"refit": _REFIT}),
})  # fmt: skip
_COUNTS = ("round", "planned_rounds", "not_compared", "head_features", "hidden")
_TEXTS = ("job", "candidate", "created", "version", "strategy", "site", "backbone")
_MODEL = _facts({}, {
    **dict.fromkeys(_COUNTS, Count), **dict.fromkeys(_TEXTS, Text),
    **dict.fromkeys(("best", "best_of_rounds"), _facts({"round": Count}, {"value": Number})),
    **dict.fromkeys(("features", "input"), dict[Text, Any]),
    "image_size": Annotated[int, Field(strict=True, ge=1, le=8192)],
    "initial_body_sha256": Text | None,
    "variable_kinds": _facts({"batch_norm": Names, "constant": Names}, {}),
    "classes": GenericAlias(dict, (Text, _CLASS)),
    "contributed": dict[Text, list[tuple[Count, Count]]],
    "removed": dict[Text, dict[Text, Any]],
    "versions": dict[Text, dict[Text, Text]],
    "history": GenericAlias(list, (_facts({"job": Text, "rounds": tuple[Count, Count]}, {}),)),
    "validation": _facts({"round": Count, "auroc": dict[Text, dict[Text, Number]]}, {}),
})  # fmt: skip


def fault(manifest: Mapping[str, Any]) -> str | None:
    """The first reason why a manifest is invalid; None: it is valid."""
    try:
        _MODEL.model_validate(dict(manifest))
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        place = "".join(f"{part}: " for part in first["loc"])
        need = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
        return f"its manifest: {place}needs {need}; got {first['input']!r}"
    return None

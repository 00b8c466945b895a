"""The results of a task that several sites were given, and whether to wait on."""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["open", "enough", "too few"]


@dataclass
class Collection:
    """The results of a task.

    Attributes:
        round: The running round; None for an evaluation.
        sites: Names of those that were asked, or should have been.
        needed: Accepted results that are needed.
        wait: Seconds to wait for the others then.
        accepted: Sites whose results were accepted, in order of arrival.
        failed: Sites that answered, and whose result was not accepted.
        reasons: Site -> the first reason why its result was refused, or never came.
        reached: When enough had been accepted, in seconds; None: not yet.
        hears_all: Whether to hear the others also where enough cannot come any more.
    """

    task: str
    round: int | None
    sites: Names[str]
    needed: int
    wait: float
    accepted: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    reached: float | None = None
    hears_all: bool = False

    def accept(self, site: str, now: float) -> None:
        """A site's result was accepted, at a time of any monotonic clock."""
        self.accepted.append(site)
        if len(self.accepted) == self.needed:
            self.reached = now

    @property
    def absent(self) -> dict[str, str]:
        """Site whose result was not accepted -> why, when the task is over."""
        return {
            site: self.reasons.get(site, "not known")
            for site in sorted(self.sites)
            if site not in self.accepted
        }

    def outstanding(self) -> set[str]:
        """Sites that have not answered."""
        return set(self.sites) - set(self.accepted) - self.failed

    def verdict(self, now: float, gone: Names[str] = ()) -> Verdict:
        """Whether to wait on, at a time, with some sites gone for good.

        Returns:
            "enough" when enough results were accepted, and all others have answered, are gone, or
            were waited for long enough; "too few" as soon as enough cannot come any more or, where
            it `hears_all`, once the others were waited for likewise.
        """
        coming = self.outstanding() - set(gone)
        short = len(self.accepted) + len(coming) < self.needed
        if short and self.reached is None:
            self.reached = now
        if self.reached is None:
            return "open"
        waits = coming and now - self.reached < self.wait and (self.hears_all or not short)
        return "open" if waits else "too few" if short else "enough"

    def waiting(self, now: float, began: float, gone: Names[str] = ()) -> str:
        """For whom it waits at a time, and since when; for how long still, where that is known."""
        names = ", ".join(sorted(self.outstanding() - set(gone)))
        of_round = "" if self.round is None else f" of round {self.round}"
        got = f"{len(self.accepted)} of the {self.needed} results that it needs are accepted"
        until = None if self.reached is None else self.reached + self.wait
        left = "" if until is None else f"; up to {until - now:.0f} s more"
        return (
            f"task {self.task!r}{of_round} waits for {names}, for {now - began:.0f} s now; {got}"
            f"{left}"
        )

    def shortage(self, also: Sequence[str] = ()) -> str | None:
        """Why the run must end, with every site's reason and what `also` went wrong.

        None when enough results were accepted.
        """
        if len(self.accepted) >= self.needed:
            return None
        reasons = [f"{site}: {reason}" for site, reason in self.absent.items()]
        of_round = "" if self.round is None else f" of round {self.round}"
        return (
            f"task {self.task!r}{of_round} needs accepted results of {self.needed} of the "
            f"{len(self.sites)} sites; got {len(self.accepted)} (accepted: "
            f"{', '.join(sorted(self.accepted)) or 'none'}; refused or silent: "
            f"{'; '.join([*reasons, *also]) or 'none'}). Mend the sites, or lower min_clients."
        )

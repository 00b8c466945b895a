"""When enough sites have answered, and whether enough of them still can."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["open", "enough", "too few"]


@dataclass
class Tally:
    """What has become of a task that several sites were given.

    Attributes:
        sites: Names of those that were asked.
        needed: Accepted results that are needed.
        wait: Seconds to wait for the others once they are there.
        accepted: Sites whose results were accepted, in order of arrival.
        failed: Sites that answered, and whose result was not accepted.
        reached: When as many as needed had been accepted, seconds; None: not yet.
    """

    sites: Collection[str]
    needed: int
    wait: float
    accepted: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    reached: float | None = None

    def accept(self, site: str, now: float) -> None:
        """A site's result was accepted at a time, in seconds of any clock that only goes on."""
        self.accepted.append(site)
        if len(self.accepted) == self.needed:
            self.reached = now

    def fail(self, site: str) -> None:
        """A site's result was not accepted."""
        self.failed.add(site)

    def outstanding(self) -> set[str]:
        """Sites that have not answered."""
        return set(self.sites) - set(self.accepted) - self.failed

    def verdict(self, now: float, gone: Collection[str] = ()) -> Verdict:
        """Whether to wait on.

        Args:
            now: The time.
            gone: Sites that will not answer any more.

        Returns:
            "enough" when as many as needed were accepted, and all others have answered, are gone,
            or were waited for long enough; "too few" as soon as so many cannot be reached any more.
        """
        coming = self.outstanding() - set(gone)
        if len(self.accepted) + len(coming) < self.needed:
            return "too few"
        if self.reached is None:
            return "open"
        return "enough" if not coming or now - self.reached >= self.wait else "open"

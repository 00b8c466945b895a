"""Findings that hospitals spell in two ways, in five languages."""

from cxr_study.data.labels.vocabulary import one_finding
from surgical_aggregation.server.access.look_alikes import LookAlikes


class ChestXrayLookAlikes(LookAlikes):
    """`LookAlikes` by the study's vocabulary too: "Pleuraerguss" is Pleural Effusion in German.

    Runs on the server. Two classes of the vocabulary are never named: it says how they differ.
    """

    def one_class(self, name: str, other: str) -> str | None:
        """Why two names may mean one finding; see `vocabulary.one_finding`."""
        return one_finding(name, other)

"""The methods of training together, the papers' and those of packages, and the names of all jobs.

Installed packages can offer further methods as entry points of the group `GROUP`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cxr_study.jobs.method import Method
from surgical_aggregation.extras import offered

__all__ = ["METHODS"]

GROUP = "cxr_study.methods"

# fmt: off
_METHODS = (
    Method("surgical", "Surgical aggregation",
           "A class's column is averaged over the sites that label it; a site gets its own."),
    Method("personalised", "Personalised federated learning",
           "The body is averaged; every site keeps its own head.", personal_head=True),
    Method("vanilla", "Vanilla federated learning",
           "Every site predicts the union; classes that it does not label count as absent.",
           strategy="fedavg", other_classes="absent"),
    Method("partial_loss", "Federated learning with partial loss",
           "Every site predicts the union; classes that it does not label do not count.",
           other_classes="unknown"),
    Method("surgical_he", "Surgical aggregation under homomorphic encryption",
           "As surgical; the server adds and divides what it cannot read.", encrypted=True),
)
# fmt: on
PAPERS = tuple(method.name for method in _METHODS)
"""Names of the papers' methods."""

EVALUATION = "evaluation"
"""Name of the job that evaluates a model at the sites and trains none."""

CENSUS = "census"
"""Name of the job that counts images and labels at the sites, before training."""

_OURS = (*PAPERS, EVALUATION, CENSUS)
_OFFERED = (method for _, method in offered(GROUP, Method) if method.name not in _OURS)
METHODS: Mapping[str, Method] = MappingProxyType(
    {method.name: method for method in (*_METHODS, *_OFFERED)}
)
"""Name of the method -> method. One of a package with the name of a job of this software is not."""

BATCH_NORM: Mapping[str, str] = {
    "fedavg": "batch norm averaged",
    "fedbn": "batch norm local",
    "fedbn+": "batch norm frozen",
    "fixbn": "batch norm statistics frozen",
}
"""Strategy -> what happens to batch norm, in words for pages."""

JOBS = (*METHODS, EVALUATION, CENSUS)
"""Names of all jobs."""

BEYOND = (
    "average_decay", "body_weighting", "head_weighting", "pseudo_labels", "refit_model",
    "server_optimizer",
)  # fmt: skip
"""Settings that go beyond the papers of these methods; each is off by default."""


def method_title(job: str) -> str:
    """The title of the method that a job's name is; the name itself for any other job."""
    return METHODS[job].title if job in METHODS else job

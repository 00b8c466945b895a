"""Options of a site's training, independent of its data and network."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from surgical_aggregation.aggregation import batch_norm_strategy as strategies
from surgical_aggregation.aggregation.batch_norm_strategy import Strategy

CLASS_WEIGHTINGS = ("none", "balanced")

PSEUDO_LABELS = ("none", "soft")

SENT = ("weights", "differences")
"""What a site can send after training."""


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a site's training; each default is the papers' value, or off.

    Attributes:
        strategy: How batch normalisation is handled; see `aggregation.batch_norm_strategy`. Must
            equal the server's. Default "fedbn+".
        personal_head: Whether the head stays at the site, which trains its own. Default False.
        epochs: Passes over the training split per round, E. Default 1.
        learning_rate: Of Adam. Default 5e-5, the papers' for DenseNet121.
        warmup_epochs: Passes over the frozen body's features for new columns. Default 15.
        warmup_learning_rate: Of the warm-up's Adam. Default 5e-3.
        gradient_clip: Largest global norm of a batch's gradient. Default 0: no limit.
        proximal: Weight mu of FedProx's term mu/2 |w - w_received|^2. Default 0: off.
        class_weighting: "none" (default), or "balanced": positives and negatives of a class have
            equal total weight in the loss.
        focal_gamma: Exponent of the focal loss. Default 0: plain cross-entropy.
        pseudo_labels: Pseudo-labels from the received model, for classes of a union head that the
            site does not label: "none" (default) or "soft"; see `loss.TaughtOutputs`.
        pseudo_labels_from: First round in which they count; before, the model is too weak. Default
            4.

    Raises:
        ValueError: An option is out of range.

    Source:
        Recipe: Kulkarni et al., ML4H 2024, Section 4. FedProx: Li et al., MLSys 2020. Focal loss:
        Lin et al., ICCV 2017.
    """

    strategy: str | Strategy = "fedbn+"
    personal_head: bool = False
    epochs: int = 1
    learning_rate: float = 5e-5
    warmup_epochs: int = 15
    warmup_learning_rate: float = 5e-3
    gradient_clip: float = 0.0
    proximal: float = 0.0
    class_weighting: str = "none"
    focal_gamma: float = 0.0
    pseudo_labels: str = "none"
    pseudo_labels_from: int = 4

    def __post_init__(self) -> None:
        for name in ("learning_rate", "warmup_learning_rate"):
            object.__setattr__(self, name, float(getattr(self, name)))  # Keras refuses integers
        strategies.find(self.strategy)
        words = {"class_weighting": CLASS_WEIGHTINGS, "pseudo_labels": PSEUDO_LABELS}
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name in words and value not in words[name]:
                raise ValueError(f"{name} must be one of {words[name]}; got {value!r}.")
            least = 1 if name == "epochs" else 0
            if type(field.default) in (int, float) and not value >= least:
                raise ValueError(f"{name} must be at least {least}; got {value}.")


def training_options(given: Mapping[str, Any] | None) -> TrainingOptions:
    """Make options from values by name; the others have defaults. Raises `ValueError`."""
    known = [field.name for field in fields(TrainingOptions)]
    if unknown := sorted(set(given or {}) - set(known)):
        raise ValueError(
            f"training options are {', '.join(known)}; got {unknown}. Check the spelling."
        )
    return TrainingOptions(**(given or {}))

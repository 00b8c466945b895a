"""How a site trains: everything but its data and its network."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from surgical_aggregation.aggregation import strategy as strategies
from surgical_aggregation.aggregation.strategy import Strategy

CLASS_WEIGHTINGS = ("none", "balanced")

PSEUDO_LABELS = ("none", "soft")

SENT = ("weights", "differences")
"""What a site may send after training."""


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a site's training, with the papers' value or "off" as default.

    Attributes:
        strategy: What becomes of batch normalisation; see `strategy`. The same as the server's.
        personal_head: The head stays at the site, which trains its own.
        epochs: Passes over the training split per round, E.
        learning_rate: Of Adam; the papers, for DenseNet121.
        warmup_epochs: Passes over the frozen body's features for new columns.
        warmup_learning_rate: Of the warm-up's Adam.
        gradient_clip: Largest global norm of a batch's gradient; 0: no limit.
        proximal: Weight mu of FedProx's term mu/2 |w - w_received|^2; 0: none.
        class_weighting: "none", or "balanced": positives and negatives of a class have the same
            total weight in the loss.
        focal_gamma: Exponent of the focal loss; 0: plain cross-entropy.
        pseudo_labels: For classes of a union head that the site does not label, by the received
            model: "none" or "soft"; see `loss.TaughtOutputs`.
        pseudo_labels_from: Round from which on they count; before it the model knows too little.

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
            object.__setattr__(self, name, float(getattr(self, name)))  # Keras takes no 1 for 1.0
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
    """Options by name; the others have their defaults. Raises `ValueError`."""
    known = [field.name for field in fields(TrainingOptions)]
    if unknown := sorted(set(given or {}) - set(known)):
        raise ValueError(
            f"options of the training are {', '.join(known)}; got {unknown}. Check the spelling."
        )
    return TrainingOptions(**(given or {}))

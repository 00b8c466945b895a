"""Early stopping: whether training ends because its models have stopped improving."""


def should_stop(
    round_: int, best_round: int | None, patience: int, *, not_compared: int = 0
) -> bool:
    """Whether a round must be the last one of training.

    Args:
        round_: The round.
        best_round: Round of the best model so far. None: there is none, so training continues.
        patience: Rounds without a better model after which to stop. 0: never.
        not_compared: Rounds since the best model whose models could not be compared with it; they
            do not count. Default 0.

    Example:
        >>> should_stop(5, 3, patience=2), should_stop(5, 3, patience=2, not_compared=1)
        (True, False)
    """
    if not patience or best_round is None:
        return False
    return round_ - best_round - not_compared >= patience

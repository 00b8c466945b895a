"""Numbers, intervals and lines of the documents' tables, and the rows that several have."""

from pathlib import Path

from scipy import stats

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "custom/reports"
UNDEFINED = "\N{EN DASH}"

PUBLISHED, OURS = "surgical fedbn+", "surgical fedavg recommended"
RECOMMENDED, ALONE = "surgical fedbn+ extras", "individual fedbn+ extras"
BATCH_NORM = {
    "fedavg": "averaged", "fedbn": "local", "fedbn+": "frozen", "fixbn": "statistics frozen",
}  # fmt: skip


def minus(text):
    return text.replace("-", "\N{MINUS SIGN}")


def change(value):
    text = f"{value:+.3f}"
    return minus(text if float(text) else "0.000")


def between(value, low, high, signed=False):
    bounds = f"({minus(f'{low:.3f}')} to {minus(f'{high:.3f}')})"
    return f"{change(value) if signed else minus(f'{value:.3f}')} {bounds}"


def over_seeds(by_seed, signed=False):
    """Mean of one value a seed, ± half its 95 % t interval."""
    if by_seed.empty:
        return UNDEFINED
    half = by_seed.sem() * stats.t.ppf(0.975, len(by_seed) - 1)
    mean = change(by_seed.mean()) if signed else f"{by_seed.mean():.3f}"
    return f"{mean} ± {half:.3f}"


def table(head, rows):
    head, *lines = (f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in (head, *rows))
    return head + "|---" * (head.count("|") - 1) + "|\n" + "".join(lines)

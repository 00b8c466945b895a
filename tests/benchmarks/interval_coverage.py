"""How often do the bootstrap intervals of AUROCs hold the true AUROC, by number of positives?

Scores are normal, of one variance, with means apart by what the true AUROC asks for; every image is
of another patient. The intervals are those of a run's report: `bootstrap.resample`, the 95 %
percentile ends over the resamples that define the class, whatever `bootstrap.FEWEST` says.

Mean: over classes of so many positives each, their resamples leaving out a class that has none, as
it was before classes of too few patients left means.

Usage: python tests/benchmarks/interval_coverage.py [--positives 1 2 3] [--repeats 400]
"""

import measure
import numpy as np
from scipy.stats import norm

from cxr_study.evaluation.bootstrap import percentile_ends, resample

AREAS = (0.6, 0.7, 0.8, 0.9, 0.95)


def drawn(counts, area, negatives, seed):
    """AUROCs on resamples of one data set, a class per number of positives: (1000, classes)."""
    rng = np.random.default_rng([seed, int(1000 * area)])
    images = max(counts) + negatives
    labels = np.arange(images)[:, None] < np.array(counts)
    labels = rng.permuted(labels.astype(float), axis=0)
    scores = rng.normal(size=labels.shape) + labels * norm.ppf(area) * np.sqrt(2)
    names = [str(n) for n in range(len(counts))]
    return resample(labels, scores, names, np.arange(images), seed=seed).drawn["auroc"]


def coverage(ends, area):
    """Share of intervals that hold the area, and their mean width."""
    low, high = np.array(list(ends)).T
    return f"{np.mean((low <= area) & (area <= high)):.2f} ({np.mean(high - low):.2f})"


def main():
    given = measure.options(
        __doc__, positives=[1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50], negatives=200, repeats=400
    )
    print("| positives | " + " | ".join(f"AUROC {area}" for area in AREAS) + " |")
    print("|---:|" + "---|" * len(AREAS))
    for number in given.positives:
        counts = [number] * given.repeats
        found = [
            coverage(map(percentile_ends, drawn(counts, area, given.negatives, number).T), area)
            for area in AREAS
        ]
        print(f"| {number} | {' | '.join(found)} |", flush=True)
    for counts in (range(1, 4), range(1, 11), range(10, 13), range(10, 20)):
        cells = []
        for area in AREAS:
            every = [drawn(counts, area, given.negatives, n) for n in range(given.repeats // 4)]
            means = [np.ma.masked_invalid(d).mean(axis=1).filled(np.nan) for d in every]
            cells.append(coverage(map(percentile_ends, means), area))
        print(f"| mean, {counts[0]} to {counts[-1]} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

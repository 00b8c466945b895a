"""Draw what `many_sites.py --csv` measured: seconds of a round and memory, against sites.

python tests/benchmarks/scale_picture.py --csv custom/reports/scale/many_sites.csv
"""

from pathlib import Path

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator, ScalarFormatter
from measure import options

PANELS = {
    "seconds": "seconds a round",
    "memory": "memory of the server's job process, MB",
}


def main():
    wanted = options(__doc__, csv="many_sites.csv", out="")
    measured = pd.read_csv(wanted.csv).sort_values("sites")
    figure, axes = plt.subplots(1, len(PANELS), figsize=(8, 3.2), layout="constrained")
    for axis, (column, title) in zip(axes, PANELS.items(), strict=True):
        for megabytes, rows in measured.groupby("megabytes"):
            axis.plot(rows["sites"], rows[column], "o-", label=f"model of {megabytes:g} MB")
        axis.set(xscale="log", yscale="log", xlabel="sites", title=title)
        axis.set_xticks(sorted(set(measured["sites"])))
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_formatter(ScalarFormatter())
        axis.minorticks_off()
        axis.legend()
        low, high = axis.get_ylim()
        axis.set_ylim(low / 2, high * 2)
    out = Path(wanted.out or Path(wanted.csv).with_suffix(".svg"))
    figure.savefig(out)
    print(out)


if __name__ == "__main__":
    main()

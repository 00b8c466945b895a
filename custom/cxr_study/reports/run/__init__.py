"""The report of one run: what was learned, where, how well, and how long it took.

`evaluate_run` measures a finished run's models, or reads what its sites measured, and writes
`report.html`, `summary.json` and the model cards. What the page states is made in modules without
HTML: `clinical_view` its head for clinicians, `run_view` tables and headlines, `comparisons` the
differences to other models, `notices` and `run_warnings` what limits the results, `examples` the
test images, `run_figures` the figures. `console` prints the same in a terminal.
"""

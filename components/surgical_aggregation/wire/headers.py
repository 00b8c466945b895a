"""Names that components agree on: of headers, properties, events, and values of settings.

What server and sites say to each other stands first, then what the server's components say among
themselves.
"""

SIMULATED_JOB = "simulate_job"
"""The job id that FLARE's simulator gives every job."""

# From a site to the server: public sticky properties, which ride on every message.

CLASSES = "surgical.classes"
"""Classes that the site labels and its policy shares."""

PROCESS = "surgical.process"
"""Which of the site's processes declares them. A new one may declare other classes."""

POSITIVES = "surgical.positives"
"""DXO meta of a training result: class -> number of positive labels; sent only where g needs it."""

# From the server to a site: headers of tasks with a model.

INITIAL_BODY = "surgical.initial_body_sha256"
"""Of the first round's task: digest of the body that every site must start from."""

CONTINUES = "surgical.continues"
"""Of a continued run's tasks: {"jobs", "round"}; see `continuation.continued`."""

BEST_ROUND = "surgical.best_round"
"""Round of the best model so far; absent while there is none.

At the server also a private sticky property, which `BestModelSelector` sets."""

MODEL_ROUND = "surgical.model_round"
"""Of an evaluation: how many rounds the model has been through; at the server also a property."""

# Among the server's components: private properties of the context.

HOLDERS = "surgical.holders"
"""DXO meta of an aggregate: class -> names of the sites whose columns were averaged."""

ACCEPTED = "surgical.accepted"
"""While a round is averaged and merged: site -> the `Contribution` in it."""

COLUMN_SIMILARITY = "surgical.column_similarity"
"""What `column_similarity` says of a round's results."""

MODEL_HAS_HEAD = "surgical.model_has_head"
"""Whether the model that is measured has a column."""

GONE = "surgical.gone"
"""Site -> why it will not answer any more."""

# Among the server's components: events, each with the property that says what happened.

CONTRIBUTION_REFUSED, SITE_SILENT = "surgical.contribution_refused", "surgical.site_silent"
REFUSAL = "surgical.refusal"
"""Beside both events: the `Refusal` as a dict, of a result that is left out, or that never came."""

ROUND_DROPPED, DROP = "surgical.round_dropped", "surgical.drop"
"""The model stays as it was: {"round", "reason"}."""

TRAINING_STOPPED, STOPPED = "surgical.training_stopped", "surgical.stopped"
"""Training ends before its last round: {"round" that was the last, "best_round", "patience"}."""

BEST_DROPPED, DROPPED = "surgical.best_dropped", "surgical.dropped"
"""The best model of the run that is continued is none of this run's: why."""

BEST = "surgical.best"
"""Beside GLOBAL_BEST_MODEL_AVAILABLE, the best model's record: {"round", "metric", "value": mean
loss over the sites that measured it, "sites": site -> loss, "classes": site -> the classes that it
declared, "columns": the classes that the model has a column for}.

A better model's value may be larger: others measured it. Beside INITIAL_MODEL_LOADED: the record
that a continued run takes over; one of an earlier version has no "columns"."""

# Values of the server's setting `tracking`.

TRACKERS = ("tensorboard", "mlflow")
NONE = "none"

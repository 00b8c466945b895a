"""Names of headers, properties and events, and values of settings, that components share."""

SIMULATED_JOB = "simulate_job"
"""The job id that FLARE's simulator gives every job."""

# From a site to the server: public sticky properties, which FLARE sends with every message.

CLASSES = "surgical.classes"
"""Classes that the site labels and its policy shares."""

VERSIONS = "surgical.versions"
"""Package -> version at the site, see `wire.versions`."""

POSITIVES = "surgical.positives"
"""DXO meta of a training result: class -> number of positive labels; for weighting "positives"."""

LACKING = "surgical.lacking"
"""DXO meta of a training result: class -> kind of label that the site lacks, see
`one_sided.lacking`."""

FEATURES = "surgical.features"
"""DXO meta of a test result: statistics of the site's features; see `feature_statistics`."""

# At the server: header of the reply that replaces an unreadable result.

UNREADABLE = "surgical.unreadable"
"""Why a site's result could not be read."""

# The first task, which checks that the sites can participate; see `SiteCheck`.

CHECK_TASK = "check"

BODY_SHAPES, NETWORK, TRAINS = "body", "network", "trains"
"""Of its data: path of a body variable -> shape (None: unknown), network facts, and whether the job
trains the model."""

FREE_DISK, CERTIFICATE_DAYS, CANNOT = "free_disk", "certificate_days", "cannot"
"""Of its result: bytes and days (None: unknown), and why the site cannot participate (None: it
can)."""

NO_KEYS = "surgical.no_keys"
"""At a site, private: why it cannot encrypt or decrypt; None: it can."""

FAULT = "surgical.fault"
"""Public property of the server, sent with the task: why the receiving site cannot participate."""

# From the server to a site: headers of tasks with a model.

INITIAL_BODY = "surgical.initial_body_sha256"
"""In the first round: digest of the body that every site must start from."""

CONTINUES = "surgical.continues"
"""In a resumed run: {"jobs", "round"}; see `Manifest.continued`."""

BEST_ROUND = "surgical.best_round"
"""Round of the best of the rounds' models, if any; at the server also a private sticky property."""

MODEL_ROUND = "surgical.model_round"
"""Of an evaluation: the model's round."""

# Among the server's components: private properties of the context.

RESULT = "surgical.result"
"""While a site's result is processed: its `SiteResult`, read by `CollectingController`."""

ACCEPTED = "surgical.accepted"
"""While a round is averaged and merged: site -> its `SiteResult`."""

COLLECTED = "surgical.collected"
"""Of the last task: {"accepted": sites, "absent": site of the job -> reason}."""

COLUMN_SIMILARITY = "surgical.column_similarity"
"""Result of `column_similarity` for a round."""

MEASURED = "surgical.measured"
"""The evaluated model: {"round", "has_head", "features": number of features of a column}."""

GONE = "surgical.gone"
"""Site -> why it will not reply any more; see `SiteWatch`."""

LEFT_OUT = "surgical.left_out"
"""Site -> why it cannot participate in the run; see `SiteCheck`."""

# Among the server's components: events, each with the property that has its facts.

CONTRIBUTION_REFUSED, SITE_SILENT = "surgical.contribution_refused", "surgical.site_silent"
REQUEST_REFUSED = "surgical.request_refused"
REFUSAL = "surgical.refusal"
"""With each of the three events: {"site", "task", "round", "reason"}; see `announce`."""

CLASSES_DECLARED = "surgical.classes_declared"
"""A site has requested a task, and so declared its classes."""

LOOK_ALIKE, ALIKE = "surgical.look_alike", "surgical.alike"
"""Classes of different sites may be one: {"classes": class -> sites, "reason"}."""

SITE_CHECKED, DECLARED = "surgical.site_checked", "surgical.declared"
"""A site's reply to `SiteCheck`: facts of the record's line "declared", see `RunRecord`."""

ROUND_DROPPED, DROP = "surgical.round_dropped", "surgical.drop"
"""A round is dropped and the model unchanged: {"round", "reason"}."""

TRAINING_STOPPED, STOPPED = "surgical.training_stopped", "surgical.stopped"
"""Training stops early: {"round": the last one, "best_round", "patience"}."""

MODEL_VALIDATED = "surgical.model_validated"
"""The sites have validated the final model or a candidate; the global model's manifest has the
metrics."""

BEST_DROPPED, DROPPED = "surgical.best_dropped", "surgical.dropped"
"""The resumed run's best model cannot be this run's: {"reason"}."""

CANDIDATE, AVERAGE, REFIT = "candidate", "average", "refit"
"""Key in a manifest and in a best model's record, with one of two values: how the model was made
after training, see `candidates`. Models of rounds do not have the key."""

BEST_OF_ROUNDS = "best_of_rounds"
"""Key in a manifest: record of the best of the rounds' models, without candidates; see `BEST`."""

BEST = "surgical.best"
"""With GLOBAL_BEST_MODEL_AVAILABLE, the best model's record: {"round", "metric", "value": mean loss
over the sites that measured it, "sites": site -> loss, "classes": site -> declared classes,
"columns": classes of the model}. With INITIAL_MODEL_LOADED: the record that a resumed run starts
from.

A better model can have a larger value, if other sites measured it."""

# Values of the server's setting `tracking`.

TRACKERS = ("tensorboard", "mlflow")
NONE = "none"

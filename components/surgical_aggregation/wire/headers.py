"""Names of headers, properties, events and values of settings that components agree on."""

SIMULATED_JOB = "simulate_job"
"""The job id that FLARE's simulator gives every job."""

# From a site to the server: public sticky properties, which ride on every message.

CLASSES = "surgical.classes"
"""Classes that the site labels and its policy shares."""

PROCESS = "surgical.process"
"""The site's process that declares them; a new process may declare others."""

VERSIONS = "surgical.versions"
"""Package -> its version at the site, see `versions`."""

POSITIVES = "surgical.positives"
"""DXO meta of a training result: class -> number of positive labels; for weighting "positives"."""

LACKING = "surgical.lacking"
"""DXO meta of a training result: class -> what none of the site's training images is, see
`one_sided.lacking`."""

FEATURES = "surgical.features"
"""DXO meta of a test's result: where the site's images lie; see `feature_statistics`."""

# At the server: header of what stands for a result.

UNREADABLE = "surgical.unreadable"
"""Why a site's result could not be read."""

# The task that asks the sites, before any other, whether they can take part; see `SiteCheck`.

CHECK_TASK = "check"

BODY_SHAPES, NETWORK = "body", "network"
"""Of its data: variable of the body -> its shape (None: not known), and network facts."""

FREE_DISK, CERTIFICATE_DAYS, CANNOT = "free_disk", "certificate_days", "cannot"
"""Of its result: bytes, days, and why the site cannot take part; None each: not known, it can."""

NO_KEYS = "surgical.no_keys"
"""At a site, private: why it cannot encrypt or decrypt, if so."""

FAULT = "surgical.fault"
"""Public property of the server beside the task: what keeps the site that gets it out."""

# From the server to a site: headers of tasks with a model.

INITIAL_BODY = "surgical.initial_body_sha256"
"""In the first round: digest of the body that every site must start from."""

CONTINUES = "surgical.continues"
"""In a continued run: {"jobs", "round"}; see `Manifest.continued`."""

BEST_ROUND = "surgical.best_round"
"""Round of the best of the rounds' models, if any; at the server also a private sticky property."""

MODEL_ROUND = "surgical.model_round"
"""Of an evaluation: the model's round."""

# Among the server's components: private properties of the context.

RESULT = "surgical.result"
"""While a site's result is taken: the result as a `SiteResult`, read by `CollectingController`."""

ACCEPTED = "surgical.accepted"
"""While a round is averaged and merged: site -> its `SiteResult`."""

COLLECTED = "surgical.collected"
"""Of the last task: {"accepted": sites, "absent": site of the job -> reason}."""

COLUMN_SIMILARITY = "surgical.column_similarity"
"""What `column_similarity` says of a round's results."""

MEASURED = "surgical.measured"
"""The model that is measured: {"round", "has_head", "features": number that a column weighs}."""

GONE = "surgical.gone"
"""Site -> why it will not answer any more."""

LEFT_OUT = "surgical.left_out"
"""Site -> why it cannot take part in the run, as the first workflow has found."""

# Among the server's components: events, each with the property that says what happened.

CONTRIBUTION_REFUSED, SITE_SILENT = "surgical.contribution_refused", "surgical.site_silent"
REQUEST_REFUSED = "surgical.request_refused"
REFUSAL = "surgical.refusal"
"""With each of the three events: {"site", "task", "round", "reason"}; see `announce`."""

CLASSES_DECLARED = "surgical.classes_declared"
"""A site asks for a task, and so has declared its classes."""

LOOK_ALIKE, ALIKE = "surgical.look_alike", "surgical.alike"
"""Classes of different sites may be one: {"classes": class -> sites, "reason"}."""

SITE_CHECKED, DECLARED = "surgical.site_checked", "surgical.declared"
"""What a site declares, and can: the facts of the record's line "declared", see `RunRecord`."""

ROUND_DROPPED, DROP = "surgical.round_dropped", "surgical.drop"
"""The model stays as it was: {"round", "reason"}."""

TRAINING_STOPPED, STOPPED = "surgical.training_stopped", "surgical.stopped"
"""Training ends early: {"round" that was the last, "best_round", "patience"}."""

MODEL_VALIDATED = "surgical.model_validated"
"""The sites have measured the final model, or a candidate; the global model's manifest has it."""

BEST_DROPPED, DROPPED = "surgical.best_dropped", "surgical.dropped"
"""{"reason" why the best model of the run that is continued cannot be this run's}."""

CANDIDATE, AVERAGE, REFIT = "candidate", "average", "refit"
"""In a manifest, and in a best model's record: how the model was made after training from those of
the rounds, one of the two; see `candidates`. The models of the rounds do not have the key."""

BEST_OF_ROUNDS = "best_of_rounds"
"""In a manifest: the record of the best of the rounds' models, see `BEST`; no candidate's."""

BEST = "surgical.best"
"""With GLOBAL_BEST_MODEL_AVAILABLE, the best model's record: {"round", "metric", "value": mean loss
over the sites that measured it, "sites": site -> loss, "classes": site -> declared classes,
"columns": classes of the model}. With INITIAL_MODEL_LOADED: the record that a continued run starts
from; one of an earlier version has no "columns".

A better model's value may be larger: other sites measured it."""

# Values of the server's setting `tracking`.

TRACKERS = ("tensorboard", "mlflow")
NONE = "none"

"""The components of each job, and its FLARE recipe for SimEnv, PocEnv and ProdEnv.

Importing this module imports FLARE's recipes, which remove `--export` and `--export-dir` from the
command line (`sys.argv`).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from nvflare.job_config.defs import FilterType
from nvflare.recipe.spec import ExecEnv, Recipe

from cxr_study.jobs.flare_job import FlareJob
from cxr_study.jobs.job import Job
from cxr_study.jobs.method import Method
from cxr_study.jobs.methods import CENSUS, METHODS
from cxr_study.jobs.presets import JobError
from surgical_aggregation.site.contract.site import Site
from surgical_aggregation.site.training.training_options import TrainingOptions

__all__ = ["JobRecipe"]

_MODEL_TASKS = ("train", "validate", "test")


class JobRecipe(Recipe):
    """A job as a FLARE recipe.

    Server and sites get different apps, and a site with its own settings gets its own app. Data and
    initial body are not part of the job: see the settings `sites` and `initial_body`.

    Args:
        job: A job by name, see `Job.asked`. The job of a folder cannot be rebuilt.
        site: Component that provides classes, network and data in place of the chest X-ray site,
            whose settings are then left out. Default None: the chest X-ray site.
        code: How the code reaches server and sites, one of `CODE_MODES`. Default "installed".
            FLARE's own POC needs "marked", because its kits do not allow our classes.

    Raises:
        JobError: The job is of a folder, or `code` is unknown.

    Example:
        >>> recipe = JobRecipe(Job.asked("surgical", settings={"num_rounds": 2}))
        >>> recipe.export("exported")
    """

    def __init__(self, job: Job, *, site: Site | None = None, code: str = "installed"):
        self.job = job
        self.site = site
        super().__init__(flare_job(job, code))

    def process_env(self, env: ExecEnv) -> None:
        """Check that the environment has the sites of the job; called by FLARE before execution.

        Raises:
            JobError: The environment lists its sites (as SimEnv and PocEnv do), and one is missing.
        """
        names = getattr(env, "clients", self.job.sites) or ()
        if missing := [site for site in self.job.sites if site not in names]:
            raise JobError(
                f"the environment needs the job's sites; it lacks {', '.join(missing)}. Give it "
                f"clients={list(self.job.sites)}."
            )

    def _apply_per_site_config(self, config: dict[str, dict[str, Any]]) -> None:
        self.job = self.job.with_settings({}, config)

    def _prepare_client_apps(self) -> None:
        add_sites(self._job, self.job, self.site)


def flare_job(job: Job, code: str = "installed") -> FlareJob:
    """Build the server's part of a job for FLARE; `add_sites` adds the sites'.

    Args:
        job: A job by name.
        code: One of `CODE_MODES`.

    Raises:
        JobError: The job is of a folder, or `code` is unknown.
    """
    if job.folder is not None:
        raise JobError(f"a recipe needs a job by name; got the folder {job.folder.path}.")
    made = FlareJob(job, code)
    if job.method == CENSUS:
        _census_server(made)
    elif job.method in METHODS:
        _training_server(made, METHODS[job.method])
    else:
        _evaluation_server(made)
    made.finish_server()
    return made


def add_sites(made: FlareJob, job: Job, site: Site | None = None) -> None:
    """Add the sites' part of a job; call it once.

    Args:
        made: Result of `flare_job`.
        job: The same job, perhaps with other settings of single sites.
        site: Component in place of the chest X-ray site. Default None: that one.
    """
    made.asked = job
    if job.method == CENSUS:
        _census_site(made)
    else:
        _model_site(made, METHODS.get(job.method), site)
    made.finish_sites()


def _training_server(made: FlareJob, method: Method) -> None:
    component, add = made.component, made.to_server
    refit = ("refit",) if method.common_model else ()
    add(component("InitialBody", file="initial_body"), id="initial_body")
    add(component("CheckpointPersistor", "continues"), id="persistor")
    generator = component(
        "MergeIntoGlobalModel",
        "average_decay",
        optimizer="server_optimizer",
        learning_rate="server_learning_rate",
        momentum="server_momentum",
    )
    add(generator, id="shareable_generator")
    aggregator = "EncryptedSurgicalAggregator" if method.encrypted else "SurgicalAggregator"
    weightings = ("weighting", "body_weighting", "head_weighting")
    fixed = {"personal_head": True} if method.personal_head else {}
    add(component(aggregator, "strategy", *weightings, fixed=fixed), id="aggregator")
    if method.common_model:
        columns = component(
            "SurgicalAggregator", "strategy", "head_weighting", fixed={"columns_only": True}
        )
        add(columns, id="column_aggregator")
    add(component("BestModelSelector"), id="best_model")
    if not method.encrypted:
        add(component("BestModelFeatures"), id="best_model_features")
    add(component("LookAlikes"), id="look_alikes")
    _records(made)
    add(component("MetricsArtifactWriter"), id="metrics_writer")
    add(component("ValidationJsonGenerator"), id="evaluation_writer")
    for model in ("last", "best"):
        add(component("CheckpointLocator", fixed={"model": model}), id=model)
    for model in ("average", "refit") if method.common_model else ():
        add(component("CandidateLocator", fixed={"model": model}), id=model)
    # Everything a site receives of the model passes this filter: it must be on each model task.
    add(component("SelectHead"), tasks=[*_MODEL_TASKS, *refit], filter_type=FilterType.TASK_DATA)
    for task in ("train", *refit):
        add(component("CheckResult"), tasks=[task], filter_type=FilterType.TASK_RESULT)

    # Sites that cannot participate are known before training starts.
    add(component("SiteCheck", "min_clients", "wait_seconds", "check_only"), id="check")
    training = component(
        "FederatedTraining",
        *("num_rounds", "patience", "min_clients"),
        wait_time_after_min_received="wait_seconds",
        fixed={
            "train_timeout": 0,
            "aggregator_id": "aggregator",
            "persistor_id": "persistor",
            "shareable_generator_id": "shareable_generator",
            "train_task_name": "train",
        },
    )
    add(training, id="train")
    # The last model is a candidate for the best one, so the sites measure it as well.
    add(_measurement(made, "last", "validate"), id="validate_final")
    if method.common_model:
        # So are the average of the rounds and a model with refitted columns, where they are made.
        add(_measurement(made, "average", "validate"), id="validate_average")
        refitting = component("ModelRefit", "min_clients", "wait_seconds", model="refit_model")
        add(refitting, id="refit_columns")
        add(_measurement(made, "refit", "validate"), id="validate_refit")
    add(_measurement(made, "best", "test"), id="test_best")


def _model_site(made: FlareJob, method: Method | None, site: Site | None) -> None:
    """Add what a site needs to train with a method; None: to evaluate a model."""
    component, add = made.component, made.to_sites
    add(site or _site(made, method), id="site")
    if not (method and method.personal_head):
        add(component("DeclareClasses"), id="declare_classes")
    training: dict[str, Any] = made.references(*(each.name for each in fields(TrainingOptions)))
    if method and method.personal_head:
        training["personal_head"] = True
    executor = component(
        "KerasExecutor",
        *("mixed_precision", "send", "report_counts", "report_features", "seed", "threads"),
        fixed={"training": training} if method else {},
    )
    if method is None:
        add(executor, tasks=["check", "test"])
        return
    refit = ["refit"] if method.common_model else []
    add(executor, tasks=["check", *_MODEL_TASKS, *refit])
    if method.encrypted:
        # Decrypts at the site what SelectHead has chosen for it at the server.
        add(component("DecryptTask"), tasks=_MODEL_TASKS, filter_type=FilterType.TASK_DATA)
    for task in () if method.personal_head else ("train", *refit):
        add(component("LabelHead"), tasks=[task], filter_type=FilterType.TASK_RESULT)
    if method.encrypted:
        encrypting = component("EncryptResult", "weighting")
        add(encrypting, tasks=["train"], filter_type=FilterType.TASK_RESULT)


def _evaluation_server(made: FlareJob) -> None:
    component, add = made.component, made.to_server
    add(component("EvaluatedModelLocator", file="model", job="model_of"), id="model")
    _records(made, workflow="evaluation")
    add(component("ValidationJsonGenerator"), id="evaluation_writer")
    # A site receives the columns of its own classes only, and reports its metrics for them.
    add(component("SelectHead"), tasks=["test"], filter_type=FilterType.TASK_DATA)
    check = component(
        *("SiteCheck", "min_clients", "wait_seconds", "check_only"), fixed={"model_id": "model"}
    )
    add(check, id="check")
    add(_measurement(made, "model", "test"), id="evaluation")


def _census_server(made: FlareJob) -> None:
    component, add = made.component, made.to_server
    file = {"output_path": "statistics/census.json"}
    add(component("JsonStatsFileWriter", fixed=file), id="writer")
    # Counts only. For histograms and standard deviations FLARE sends a second request, which
    # contains the first answers of all sites: every site would learn the others' class names.
    fixed = {
        "statistic_configs": {"count": {}},
        "writer_id": "writer",
        "enable_pre_run_task": False,
    }
    waiting = {"wait_time_after_min_received": "wait_seconds"}
    add(component("StatisticsController", "min_clients", fixed=fixed, **waiting), id="census")


def _census_site(made: FlareJob) -> None:
    here = {"site": "{SITE_NAME}"}
    census = made.component("CensusStatistics", "sites", fixed=here)
    made.to_sites(census, id="census")
    executor = made.component("StatisticsExecutor", fixed={"generator_id": "census"})
    made.to_sites(executor, tasks=["fed_stats"])


def _records(made: FlareJob, **summary: str) -> None:
    """Add the components that record a run and monitor its sites."""
    component, add = made.component, made.to_server
    add(component("RunRecord"), id="run_record")
    add(component("RunSummary", fixed=summary), id="run_summary")
    add(component("SiteWatch", silence="site_silence"), id="site_watch")
    add(component("Polling", "requests_per_second"), id="polling")
    add(component("Tracking", "tracking"), id="tracking")


def _measurement(made: FlareJob, model: str, task: str) -> Any:
    """Workflow in which sites evaluate a locator's model; `task` is "validate" or "test"."""
    fixed = {"model_locator_id": model, "validation_task_name": task}
    return made.component("ModelEvaluation", "min_clients", "wait_seconds", fixed=fixed)


def _site(made: FlareJob, method: Method | None) -> Any:
    fixed = {"site": "{SITE_NAME}"}
    if method and method.union_head:
        fixed["other_classes"] = method.other_classes
    names = ("sites", "backbone", "image_size", "hidden", "batch_size", "augmentation", "seed")
    return made.component("ChestXraySite", *names, "union", fixed=fixed)

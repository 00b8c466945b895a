"""FLARE's parts of a job, built as objects, and its recipe for SimEnv, PocEnv and ProdEnv.

To import this module is to import FLARE's recipes, which take `--export` and `--export-dir` out of
the command line.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from nvflare.job_config.defs import FilterType
from nvflare.recipe.spec import ExecEnv, Recipe

from cxr_study.jobs.flare_job import FlareJob
from cxr_study.jobs.job import Job
from cxr_study.jobs.methods import CENSUS, METHODS, Method
from cxr_study.jobs.presets import JobError
from surgical_aggregation.site.contract.site import Site
from surgical_aggregation.site.training.training_options import TrainingOptions

__all__ = ["JobRecipe"]

_MODEL_TASKS = ("train", "validate", "test")


class JobRecipe(Recipe):
    """A job as FLARE's recipe.

    Server and sites get different apps, and a site with settings of its own an app of its own. Data
    and initial body are not part of the job: see the settings `sites` and `initial_body`.

    Args:
        job: Of one of `JOBS`; see `Job.asked`. One of a folder cannot be rebuilt.
        site: Component that brings classes, network and data in place of the chest X-ray site,
            whose settings are then left out. Default None: that one.
        code: How its code gets to server and sites, one of `WAYS`. Default "installed"; FLARE's own
            POC, whose kits allow none of our classes, needs "marked".

    Raises:
        JobError: The job is of a folder, or there is no such way.

    Example:
        >>> recipe = JobRecipe(Job.asked("surgical", settings={"num_rounds": 2}))
        >>> recipe.export("exported")
    """

    def __init__(self, job: Job, *, site: Site | None = None, code: str = "installed"):
        self.job = job
        self.site = site
        super().__init__(flare_job(job, code))

    def process_env(self, env: ExecEnv) -> None:
        """Refuse an environment that names its sites, and not all of the job's."""
        names = getattr(env, "clients", self.job.sites) or ()
        if missing := [site for site in self.job.sites if site not in names]:
            raise JobError(
                f"the environment needs the job's sites; it is not told of {', '.join(missing)}. "
                f"Give it clients={list(self.job.sites)}."
            )

    def _apply_per_site_config(self, config: dict[str, dict]) -> None:
        self.job = self.job.with_settings({}, config)

    def _prepare_client_apps(self) -> None:
        add_sites(self._job, self.job, self.site)


def flare_job(job: Job, code: str = "installed") -> FlareJob:
    """FLARE's job with the server's half of a job; see `JobRecipe` and `add_sites`."""
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
    """Add the sites' half, with `site` in place of the chest X-ray site if given."""
    made.asked = job
    if job.method == CENSUS:
        _census_site(made)
    else:
        _model_site(made, METHODS.get(job.method), site)
    made.finish_sites()


def _training_server(made: FlareJob, method: Method) -> None:
    part, add = made.part, made.to_server
    refit = ("refit",) if method.common_model else ()
    add(part("InitialBody", file="initial_body"), id="initial_body")
    add(part("CheckpointPersistor", "continues"), id="persistor")
    generator = part(
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
    add(part(aggregator, "strategy", *weightings, fixed=fixed), id="aggregator")
    if method.common_model:
        columns = part(
            "SurgicalAggregator", "strategy", "head_weighting", fixed={"columns_only": True}
        )
        add(columns, id="column_aggregator")
    add(part("BestModelSelector"), id="best_model")
    if not method.encrypted:
        add(part("BestModelFeatures"), id="best_model_features")
    add(part("LookAlikes"), id="look_alikes")
    _records(made)
    add(part("MetricsArtifactWriter"), id="metrics_writer")
    add(part("ValidationJsonGenerator"), id="evaluation_writer")
    for model in ("last", "best"):
        add(part("CheckpointLocator", fixed={"model": model}), id=model)
    for model in ("average", "refit") if method.common_model else ():
        add(part("CandidateLocator", fixed={"model": model}), id=model)
    # The single gate between the server's model and a site; it must stand for every task with one.
    add(part("SelectHead"), tasks=[*_MODEL_TASKS, *refit], filter_type=FilterType.TASK_DATA)
    for task in ("train", *refit):
        add(part("CheckResult"), tasks=[task], filter_type=FilterType.TASK_RESULT)

    # Who cannot take part is known before anything is trained.
    add(part("SiteCheck", "min_clients", "wait_seconds", "check_only"), id="check")
    training = part(
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
        refitting = part("ModelRefit", "min_clients", "wait_seconds", model="refit_model")
        add(refitting, id="refit_columns")
        add(_measurement(made, "refit", "validate"), id="validate_refit")
    add(_measurement(made, "best", "test"), id="test_best")


def _model_site(made: FlareJob, method: Method | None, site: Site | None) -> None:
    """Add what a site needs to train by a method; None: to measure a model."""
    part, add = made.part, made.to_sites
    add(site or _site(made, method), id="site")
    if not (method and method.personal_head):
        add(part("DeclareClasses"), id="declare_classes")
    training: dict[str, Any] = made.references(*(each.name for each in fields(TrainingOptions)))
    if method and method.personal_head:
        training["personal_head"] = True
    executor = part(
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
        add(part("DecryptTask"), tasks=_MODEL_TASKS, filter_type=FilterType.TASK_DATA)
    for task in () if method.personal_head else ("train", *refit):
        add(part("LabelHead"), tasks=[task], filter_type=FilterType.TASK_RESULT)
    if method.encrypted:
        encrypting = part("EncryptResult", "weighting")
        add(encrypting, tasks=["train"], filter_type=FilterType.TASK_RESULT)


def _evaluation_server(made: FlareJob) -> None:
    part, add = made.part, made.to_server
    add(part("EvaluatedModelLocator", file="model", job="model_of"), id="model")
    _records(made, workflow="evaluation")
    add(part("ValidationJsonGenerator"), id="evaluation_writer")
    # A site gets the columns of its own classes alone, and says how it did with them.
    add(part("SelectHead"), tasks=["test"], filter_type=FilterType.TASK_DATA)
    check = part(
        *("SiteCheck", "min_clients", "wait_seconds", "check_only"), fixed={"model_id": "model"}
    )
    add(check, id="check")
    add(_measurement(made, "model", "test"), id="evaluation")


def _census_server(made: FlareJob) -> None:
    part, add = made.part, made.to_server
    file = {"output_path": "statistics/census.json"}
    add(part("JsonStatsFileWriter", fixed=file), id="writer")
    # Nothing but counts, ever. For histograms and standard deviations FLARE asks a second time, and
    # sends every site what all sites answered the first time: the names of the others' classes.
    fixed = {
        "statistic_configs": {"count": {}},
        "writer_id": "writer",
        "enable_pre_run_task": False,
    }
    waiting = {"wait_time_after_min_received": "wait_seconds"}
    add(part("StatisticsController", "min_clients", fixed=fixed, **waiting), id="census")


def _census_site(made: FlareJob) -> None:
    here = {"site": "{SITE_NAME}"}
    census = made.part("CensusStatistics", "sites", "image_size", "min_count", fixed=here)
    made.to_sites(census, id="census")
    executor = made.part("StatisticsExecutor", fixed={"generator_id": "census"})
    made.to_sites(executor, tasks=["fed_stats"])


def _records(made: FlareJob, **summary: str) -> None:
    """Add what keeps records of a run, and watches its sites."""
    part, add = made.part, made.to_server
    add(part("RunRecord"), id="run_record")
    add(part("RunSummary", fixed=summary), id="run_summary")
    add(part("SiteWatch", silence="site_silence"), id="site_watch")
    add(part("Polling", "requests_per_second"), id="polling")
    add(part("Tracking", "tracking"), id="tracking")


def _measurement(made: FlareJob, model: str, task: str) -> Any:
    """Have the sites measure the model of a locator by its id: task "validate" or "test"."""
    fixed = {"model_locator_id": model, "validation_task_name": task}
    return made.part("ModelEvaluation", "min_clients", "wait_seconds", fixed=fixed)


def _site(made: FlareJob, method: Method | None) -> Any:
    fixed = {"site": "{SITE_NAME}"}
    if method and method.union_head:
        fixed["other_classes"] = method.other_classes
    names = ("sites", "backbone", "image_size", "hidden", "batch_size", "augmentation", "seed")
    return made.part("ChestXraySite", *names, "union", fixed=fixed)

"""The component classes that a job may name.

Job definitions take their class paths from here, and so does the allow-list of a startup kit. FLARE
calls the constructor of a class on that list with the arguments that the job gives. The list
therefore has component classes only, and none of their arguments can name a file outside the
folders of the site or the server, or a network address.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from cxr_study.jobs.presets import JobError

ALLOWED = (
    "surgical_aggregation.encryption.encrypted_aggregator.EncryptedSurgicalAggregator",
    "surgical_aggregation.server.access.class_filters.CheckResult",
    "surgical_aggregation.server.access.class_filters.SelectHead",
    "surgical_aggregation.server.access.look_alikes.LookAlikes",
    "surgical_aggregation.server.models.aggregator.SurgicalAggregator",
    "surgical_aggregation.server.models.best_model_features.BestModelFeatures",
    "surgical_aggregation.server.models.best_model_selector.BestModelSelector",
    "surgical_aggregation.server.models.candidates.CandidateLocator",
    "surgical_aggregation.server.models.evaluated_model.CheckpointLocator",
    "surgical_aggregation.server.models.evaluated_model.EvaluatedModelLocator",
    "surgical_aggregation.server.models.global_model.MergeIntoGlobalModel",
    "surgical_aggregation.server.models.model_files.InitialBody",
    "surgical_aggregation.server.models.persistor.CheckpointPersistor",
    "surgical_aggregation.server.records.run_record.RunRecord",
    "surgical_aggregation.server.records.run_summary.RunSummary",
    "surgical_aggregation.server.records.tracking.Tracking",
    "surgical_aggregation.server.workflows.federated_training.FederatedTraining",
    "surgical_aggregation.server.workflows.heartbeat.SiteWatch",
    "surgical_aggregation.server.workflows.model_evaluation.ModelEvaluation",
    "surgical_aggregation.server.workflows.model_refit.ModelRefit",
    "surgical_aggregation.server.workflows.polling.Polling",
    "surgical_aggregation.server.workflows.site_check.SiteCheck",
    "cxr_audit.census.flare_statistics.CensusStatistics",
    "cxr_study.training.chest_xray_site.ChestXraySite",
    "surgical_aggregation.encryption.decrypt_task.DecryptTask",
    "surgical_aggregation.encryption.encrypt_result.EncryptResult",
    "surgical_aggregation.site.class_declaration.DeclareClasses",
    "surgical_aggregation.site.executor.KerasExecutor",
    "surgical_aggregation.site.label_head.LabelHead",
    "nvflare.app_common.executors.statistics.statistics_executor.StatisticsExecutor",
    "nvflare.app_common.filters.exclude_vars.ExcludeVars",
    "nvflare.app_common.filters.percentile_privacy.PercentilePrivacy",
    "nvflare.app_common.filters.svt_privacy.SVTPrivacy",
    "nvflare.app_common.logging.job_log_streamer.JobLogStreamer",
    "nvflare.app_common.statistics.json_stats_file_persistor.JsonStatsFileWriter",
    "nvflare.app_common.widgets.metrics_artifact_writer.MetricsArtifactWriter",
    "nvflare.app_common.widgets.validation_json_generator.ValidationJsonGenerator",
    "nvflare.app_common.workflows.statistics_controller.StatisticsController",
)
"""Dotted paths of the classes that a job without its own code may name."""

PACKAGES = (
    "surgical_aggregation",
    "cxr_study",
    "cxr_phantom",
    "cxr_studies",
    "cxr_audit",
    "cxr_pretrained",
)
"""Packages whose classes a job's configuration names, besides FLARE's own."""

MARKER = Path(__file__).parent / "README.txt"
"""File that "marked" jobs carry in each app's custom/ folder.

FLARE treats a job with such a file as one that brings code, so it may name any installed class.
"""

CODE_MODES: Mapping[str, str] = MappingProxyType(
    {
        "installed": "server and sites have the packages, and each allows their classes",
        "marked": "they have the packages, and allow the submitter to bring code",
        "carried": "the job brings the packages, and they allow the submitter to bring code",
    }
)
"""How the code of a job reaches server and sites -> what that requires."""


def check_code_mode(code: str) -> None:
    """Check the name of a code mode.

    Raises:
        JobError: It is not one of `CODE_MODES`.
    """
    if code not in CODE_MODES:
        raise JobError(f"code must be one of {', '.join(CODE_MODES)}; got {code!r}.")


PATHS: Mapping[str, str] = MappingProxyType({path.rpartition(".")[2]: path for path in ALLOWED})
"""Class name -> its dotted path."""

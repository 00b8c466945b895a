"""The tiers of the tests, and which test files begin."""

TIERS = {
    "quick": "pure or tiny: no TensorFlow, no FLARE process, no wheel, no browser",
    "slow": "imports TensorFlow, builds a wheel, runs a command of FLARE, or takes seconds",
    "simulator": "starts real FLARE simulator processes",
    "poc": "starts a real FLARE system (server, sites, admin) on this machine",
}
"""Tier -> what its tests do; each does what those before it may do as well."""

ABOVE_QUICK = {
    "poc": "poc",
    "simulator": "simulator",
    "cxr_pretrained/test_efficientnet_lite0.py": "slow",
    "cxr_audit/report/test_audit_report.py": "slow",
    "cxr_deployment/test_poc_system.py": "slow",
    "cxr_deployment/test_processes.py": "slow",
    "cxr_phantom/drawing/test_rendering.py": "slow",
    "cxr_phantom/test_pretrain.py": "slow",
    "cxr_phantom/writers/test_write_phantom.py": "slow",
    "cxr_study/reports/explanation/test_explanation_page.py": "slow",
    "cxr_study/reports/run/test_evaluate_run.py": "slow",
    "cxr_studies/report/figures/test_predicted.py": "slow",
    "cxr_studies/report/test_study_report.py": "slow",
    "cxr_study/evaluation/test_predictions.py": "slow",
    "cxr_study/models/test_export_model.py": "slow",
    "cxr_study/models/test_pixel_graph.py": "slow",
    "cxr_study/models/test_loaded_model.py": "slow",
    "cxr_study/models/test_own_site_model.py": "slow",
    "cxr_study/reports/card/test_model_card.py": "slow",
    "cxr_study/training/test_augmentation.py": "slow",
    "cxr_study/training/test_backbones.py": "slow",
    "cxr_deployment/commands/test_poc.py": "slow",
    "cxr_studies/commands/test_baseline.py": "slow",
    "cxr_study/cli/test_model.py": "slow",
    "cxr_study/cli/test_model_use.py": "slow",
    "cxr_study/data/images/test_image_store.py": "slow",
    "cxr_studies/runner/test_side_by_side.py": "slow",
    "cxr_study/training/test_input_pipeline.py": "slow",
    "cxr_study/training/test_network.py": "slow",
    "cxr_study/runs/test_simulator_process.py": "slow",
    "cxr_study/training/test_chest_xray_site.py": "slow",
    "cxr_studies/baseline/test_pooled_site.py": "slow",
    "cxr_studies/baseline/test_without_federation.py": "slow",
    "jobs/test_job.py": "slow",
    "surgical_aggregation/test_contract.py": "slow",
    "surgical_aggregation/site/test_executor.py": "slow",
    "surgical_aggregation/site/training/test_fused_kernels.py": "slow",
    "surgical_aggregation/site/training/test_column_warm_up.py": "slow",
    "surgical_aggregation/site/training/test_local_model.py": "slow",
    "surgical_aggregation/site/training/test_trainer.py": "slow",
    "surgical_aggregation/site/training/test_loss.py": "slow",
    "surgical_aggregation/site/contract/test_architecture.py": "slow",
    "surgical_aggregation/site/contract/test_restricted_site.py": "slow",
    "surgical_aggregation/test_round_trip.py": "slow",
    "surgical_aggregation/site/test_site_memory.py": "slow",
    "surgical_aggregation/site/test_site_tasks.py": "slow",
    "surgical_aggregation/site/training/test_tensorflow_setup.py": "slow",
    "cxr_audit/commands/test_data_audit.py": "slow",
    "cxr_studies/commands/test_data_partition.py": "slow",
    "cxr_studies/partition/test_partition.py": "slow",
    "cxr_studies/report/tables/test_layouts.py": "slow",
    "cxr_study/cli/test_data.py": "slow",
    "cxr_study/data/readers/test_fuzz.py": "slow",
    "cxr_study/models/test_fit_calibration.py": "slow",
    "surgical_aggregation/test_growth.py": "slow",
    "test_base_install.py": "slow",
    "test_extending.py": "slow",
    "test_mutants.py": "slow",
    "test_packaging.py": "slow",
}
"""Folder or file -> its tier; of all others it is "quick"."""

HEAVIEST = ("poc/test_faults.py", "poc/test_studies.py", "poc/test_network.py")
"""What takes minutes begins first."""


def tier(path):
    """Tier of a test file, by its path below `TESTS`."""
    found = ABOVE_QUICK.get(path.parts[0]) if path.parts else None
    return found or ABOVE_QUICK.get(path.as_posix(), "quick")

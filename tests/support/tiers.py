"""The tiers of the tests, and which test files begin."""

TIERS = {
    "quick": "pure or tiny: no TensorFlow, no FLARE process, no wheel, no browser",
    "slow": "imports TensorFlow, builds a wheel, runs a command of FLARE, or takes seconds",
    "simulator": "starts real FLARE simulator processes",
    "poc": "starts a real FLARE system (server, sites, admin) on this machine",
}
"""Tier -> what its tests do; each does what those before it may do as well."""

SLOW = {
    "": "base_install extending mutants packaging",
    "cxr_audit/commands": "data_audit",
    "cxr_audit/report": "audit_report",
    "cxr_deployment": "poc_system processes",
    "cxr_deployment/commands": "poc",
    "cxr_phantom": "pretrain",
    "cxr_phantom/drawing": "rendering",
    "cxr_phantom/writers": "write_phantom",
    "cxr_pretrained": "efficientnet_lite0",
    "cxr_studies/baseline": "pooled_site without_federation",
    "cxr_studies/commands": "baseline data_partition",
    "cxr_studies/partition": "partition",
    "cxr_studies/report": "study_report",
    "cxr_studies/report/figures": "predicted",
    "cxr_studies/report/tables": "layouts",
    "cxr_studies/runner": "side_by_side",
    "cxr_study/cli": "data model model_use",
    "cxr_study/data/images": "image_store",
    "cxr_study/data/readers": "fuzz",
    "cxr_study/evaluation": "predictions",
    "cxr_study/models": "export_model fit_calibration loaded_model own_site_model pixel_graph",
    "cxr_study/reports/card": "model_card",
    "cxr_study/reports/explanation": "explanation_page",
    "cxr_study/reports/run": "evaluate_run",
    "cxr_study/runs": "simulator_process",
    "cxr_study/training": "augmentation backbones chest_xray_site input_pipeline network",
    "jobs": "job",
    "surgical_aggregation": "contract growth round_trip",
    "surgical_aggregation/site": "executor site_memory site_tasks",
    "surgical_aggregation/site/contract": "architecture restricted_site",
    "surgical_aggregation/site/training": (
        "column_warm_up fused_kernels local_model loss tensorflow_setup trainer"
    ),
}
"""Folder -> those of its files that are, without `test_` and `.py`."""

ABOVE_QUICK = {"poc": "poc", "simulator": "simulator"} | {
    f"{folder}/test_{name}.py".lstrip("/"): "slow"
    for folder, names in SLOW.items()
    for name in names.split()
}
"""Folder or file -> its tier; of all others it is "quick"."""

HEAVIEST = ("poc/test_faults.py", "poc/test_studies.py", "poc/test_network.py")
"""What takes minutes begins first."""


def tier(path):
    """Tier of a test file, by its path below `TESTS`."""
    found = ABOVE_QUICK.get(path.parts[0]) if path.parts else None
    return found or ABOVE_QUICK.get(path.as_posix(), "quick")

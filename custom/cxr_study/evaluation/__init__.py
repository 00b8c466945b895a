"""Evaluation of models on test splits: AUROC, bootstrap intervals, calibration, subgroups."""

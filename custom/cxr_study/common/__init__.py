"""Helpers that all folders of the study use: errors, files, names, progress, wording, YAML."""

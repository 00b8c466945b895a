"""Surgical aggregation for NVIDIA FLARE: one model from sites that label different classes."""

__version__ = "0.1.0"

"""Drawings of chests."""

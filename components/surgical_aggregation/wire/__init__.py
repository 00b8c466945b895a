"""Formats and names that server and sites must agree on."""

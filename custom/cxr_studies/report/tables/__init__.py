"""The tables of a study's report."""

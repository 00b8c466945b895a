"""Checks that run in the services of a startup kit, before any job's process starts."""

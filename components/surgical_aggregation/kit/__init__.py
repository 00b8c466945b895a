"""Checks that a startup kit runs in its service, and of messages in its jobs' processes."""

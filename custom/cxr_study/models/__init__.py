"""A trained model in use: found, loaded, described, its images predicted."""

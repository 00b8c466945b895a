"""Sites: which patients, which classes, which images."""

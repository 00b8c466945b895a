"""A study's runs, made side by side."""

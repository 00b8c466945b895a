"""The phantom's patients and their findings."""

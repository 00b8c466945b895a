"""How many examples hypothesis tries: HYPOTHESIS_PROFILE is "dev", "ci" (default) or "deep"."""

import os

from hypothesis import settings

EXAMPLES = {"dev": 10, "ci": 100, "deep": 1000}

for name, number in EXAMPLES.items():
    # A machine that does several things at once has no steady pace, so no deadline.
    settings.register_profile(name, deadline=None, max_examples=number)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def examples(number):
    """So many where the profile is "ci"; in the others as many less or more."""
    return max(1, number * settings.default.max_examples // EXAMPLES["ci"])

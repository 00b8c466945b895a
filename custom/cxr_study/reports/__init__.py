"""Pages for people: a run's report, a model's card, explanations."""

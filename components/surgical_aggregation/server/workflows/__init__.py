"""The workflows: check, training rounds, refit, evaluation; polling and signs of life."""

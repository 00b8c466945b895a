"""The workflows: training rounds and an evaluation."""

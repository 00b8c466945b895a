"""The model card, Markdown."""

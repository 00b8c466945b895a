"""The model card: Markdown for hubs, HTML for people."""

"""What the server reports of a run: record, summary, curves."""

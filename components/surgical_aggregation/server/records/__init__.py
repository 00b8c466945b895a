"""What the server says of a run: record, summary, curves."""

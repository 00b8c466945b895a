"""What a study consists of."""

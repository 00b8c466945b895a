"""Pages that explain a prediction."""

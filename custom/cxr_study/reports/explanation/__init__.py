"""Pages that explain a prediction: what `surgagg predict --explain` writes for an image."""

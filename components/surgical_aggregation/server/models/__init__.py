"""The global model: aggregated, kept, chosen, evaluated."""

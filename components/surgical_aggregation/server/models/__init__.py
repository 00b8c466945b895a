"""The global model: aggregation, storage, selection, evaluation."""

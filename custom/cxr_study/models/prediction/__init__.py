"""Images that a person names, predicted: found, read, looked at, predicted, written."""

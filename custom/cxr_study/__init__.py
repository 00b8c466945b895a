"""The chest X-ray study: vocabularies, readers, splits, images and metrics of its sites."""

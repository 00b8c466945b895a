"""Training at a site: networks, input pipeline, augmentation, and the `Site` of chest X-rays."""

"""A model as a folder for a hub: files, an image with its expected output, and a check."""

"""The data of sites: labels, images, splits."""

"""The network, its batches, and a hospital's `Site`."""

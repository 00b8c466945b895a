"""The network, its batches, and training without a federation."""

"""What every room of the study uses."""

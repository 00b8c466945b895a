"""The command line: `surgagg`."""

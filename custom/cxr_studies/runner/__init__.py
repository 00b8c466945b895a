"""The runs of a study, several at a time, each in a process of its own."""

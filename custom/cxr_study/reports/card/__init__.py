"""The model card: Markdown in the folder of the model, with a file for a person's answers."""

"""The error for invalid input of a user."""


class InputError(ValueError):
    """A file or a setting is invalid.

    The message names the place (file and line, column or key), what is needed there, what was
    found and, where there is one, the remedy. `surgagg` prints it as one line, with exit code 2.
    """

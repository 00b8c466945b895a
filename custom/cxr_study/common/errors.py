"""The error of what a user gives."""


class InputError(ValueError):
    """A file or a setting is not what it should be; says where, what is needed and what came."""

"""What a job that did not end well raises, for those who only say so; needs no FLARE."""


class JobFailedError(RuntimeError):
    """A job did not end well; the message holds the reason and what to do or read."""

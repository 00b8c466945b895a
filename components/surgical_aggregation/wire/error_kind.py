"""What kind of error it is, in one word that programs may read."""

from __future__ import annotations

import errno


def error_kind(error: BaseException) -> str:
    """Name of an error's class; of one of the system its code, such as "ENOSPC"."""
    code = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
    return code or type(error).__name__

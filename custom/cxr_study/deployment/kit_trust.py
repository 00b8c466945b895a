"""Why a startup kit and the server that it names do not trust each other."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature


def distrust(kit: Path, admin: Mapping[str, Any]) -> str | None:
    """Why a kit and the server that listens do not trust each other, by their certificates.

    Args:
        kit: Folder of the startup kit.
        admin: The kit's configuration of its admin: "host", "port" and names of files.

    Returns:
        What is wrong and what to do; None where the certificates are not the reason.
    """
    pems = [(kit / "startup" / admin[file]).read_text() for file in ("ca_cert", "client_cert")]
    with suppress(OSError):  # an SSLError is one: it is no TLS, or says nothing to a stranger
        pems.append(ssl.get_server_certificate((admin["host"], int(admin["port"])), timeout=5.0))
    root, *others = (x509.load_pem_x509_certificate(pem.encode()) for pem in pems)
    names = f"{admin['client_cert']} of kit {kit}", "the server's certificate"
    for whose, one in zip(names, others, strict=False):
        try:
            one.verify_directly_issued_by(root)
        except (InvalidSignature, ValueError, TypeError):
            return (
                f"kit {kit} was not made for this server: its root certificate, "
                f"{root.subject.rfc4514_string()!r} of {root.not_valid_before_utc:%Y-%m-%d}, has "
                f"not signed {whose}. Take the kit from the same provisioning as the server's."
            )
        if (end := one.not_valid_after_utc) < datetime.now(timezone.utc):
            return f"{whose} ended on {end:%Y-%m-%d}. Have it renewed by whoever provisions."
    return None

"""Why a startup kit and the server that it names cannot talk: network or certificates."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.hashes import SHA256


def unreachable(host: str, port: int) -> str | None:
    """Why no connection to a server can be made; None where somebody listens."""
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except OSError as error:  # "Name or service not known", "Connection refused", "timed out"
        return f"nobody listens at {host}:{port}: {error.strerror or error}"
    return None


def distrust(kit: Path, admin: Mapping[str, Any]) -> str | None:
    """Why a kit and the server that listens do not trust each other, by their certificates.

    The server's name is not looked at: FLARE does not, over `scheme: http`.

    Args:
        kit: Folder of the startup kit.
        admin: The kit's configuration of its admin: "host", "port" and names of files.

    Returns:
        What is wrong and what to do; None where the certificates are not the reason.
    """
    pems = {of: (kit / "startup" / admin[of]).read_text() for of in ("ca_cert", "client_cert")}
    with suppress(OSError):  # an SSLError is one: it is no TLS, or says nothing to a stranger
        server = admin["host"], int(admin["port"])
        pems["server"] = ssl.get_server_certificate(server, timeout=5.0)
    held = {of: x509.load_pem_x509_certificate(pem.encode()) for of, pem in pems.items()}
    root, now = held["ca_cert"], datetime.now(timezone.utc)
    for of, one in held.items():
        whose = "the server's certificate" if of == "server" else f"{admin[of]} of kit {kit}"
        try:
            one.verify_directly_issued_by(root)
        except (InvalidSignature, ValueError, TypeError):
            return (
                f"kit {kit} was not made for this server: its root certificate, {_named(root)}, "
                f"has not signed {whose}, {_named(one)}. Take the kit from the same provisioning "
                "as the server's, and all its files."
            )
        begin, end = one.not_valid_before_utc, one.not_valid_after_utc
        if not begin <= now <= end:
            return (
                f"{whose} is valid from {begin:%Y-%m-%d} to {end:%Y-%m-%d}, and today is "
                f"{now:%Y-%m-%d}. Have it renewed by whoever provisions, or set the clock."
            )
    return None


def _named(certificate: x509.Certificate) -> str:
    subject, begin = certificate.subject.rfc4514_string(), certificate.not_valid_before_utc
    print_ = certificate.fingerprint(SHA256()).hex()[:12]
    return f"{subject!r} of {begin:%Y-%m-%d} (SHA-256 {print_})"

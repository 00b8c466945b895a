"""Why a startup kit and the server that it names cannot talk: name, network, certificates."""

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

_SECONDS = 5.0


def unreachable(host: str, port: int) -> str | None:
    """Why no connection to a server can be made; None where somebody listens."""
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except socket.gaierror:
        return f"the kit names the server {host!r}, and this machine knows no such name"
    except TimeoutError:
        return f"{host}:{port} does not answer; does a firewall stand between?"
    except OSError as error:
        return f"nobody listens at {host}:{port} ({error.strerror or error})"
    return None


def distrust(kit: Path, admin: Mapping[str, Any]) -> str | None:
    """Why a kit and the server that listens do not trust each other, by their certificates.

    Args:
        kit: Folder of the startup kit.
        admin: The kit's configuration of its admin: "host", "port" and names of files.

    Returns:
        What is wrong and what to do; None where the certificates are not the reason.
    """
    own, root = (_read(kit / "startup" / admin[name]) for name in ("client_cert", "ca_cert"))
    where, shown = f"{admin['host']}:{admin['port']}", None
    with suppress(OSError):  # ssl's errors are some: no TLS, or no word without a certificate
        pem = ssl.get_server_certificate((admin["host"], int(admin["port"])), timeout=_SECONDS)
        shown = x509.load_pem_x509_certificate(pem.encode())
    held = {f"kit {kit.name}": own, "root of the kit": root, f"server at {where}": shown}
    for whose, certificate in held.items():
        if certificate and (reason := _out_of_time(certificate)):
            return f"the certificate of the {whose} {reason}"
    if not _signed(own, root):
        return f"kit {kit} has files of different kits: its root has not signed its certificate."
    if shown is None or not _signed(shown, root):
        return shown and (
            f"kit {kit} was not made for the server at {where}: its root certificate, "
            f"{_named(root)}, has not signed the server's, {_named(shown)}. Take the kit of the "
            "same provisioning as the server's, from whoever provisions."
        )
    names = _names(shown)
    return (
        None
        if admin["host"] in names
        else (
            f"the kit names the server {admin['host']!r}, and its certificate is for "
            f"{', '.join(names)}. Put the name into host_names of project.yml, and renew the server's."
        )
    )


def _read(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def _out_of_time(certificate: x509.Certificate) -> str | None:
    now = datetime.now(timezone.utc)
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now > end:
        return f"ended on {end:%Y-%m-%d}. Have it renewed by whoever provisions."
    return f"begins on {begin:%Y-%m-%d %H:%M} UTC; is the clock right?" if now < begin else None


def _signed(certificate: x509.Certificate, root: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(root)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _named(certificate: x509.Certificate) -> str:
    """A certificate for people: subject, first day, and the begin of its fingerprint."""
    subject = certificate.subject.rfc4514_string()
    return f"{subject} of {certificate.not_valid_before_utc:%Y-%m-%d} (SHA-256 {certificate.fingerprint(SHA256()).hex()[:12]})"


def _names(certificate: x509.Certificate) -> list[str]:
    with suppress(x509.ExtensionNotFound):
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return [str(name.value) for name in found]
    return []

"""Startup kits with a certificate that a server must not accept."""

import datetime
import json
import shutil
import socket
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

DAY = datetime.timedelta(days=1)


def expired(kit, state, target):
    """A copy of a kit whose certificate the project's own authority signed, but until yesterday."""
    key = json.loads((state / "cert.json").read_text())["root_pri_key"]
    return _copy(kit, target, serialization.load_pem_private_key(key.encode(), None))


def forged(kit, target):
    """A copy of a kit whose certificate is valid, but of another authority of the same name."""
    return _copy(kit, target, rsa.generate_private_key(65537, 2048), days=30)


def _copy(kit, target, authority, days=-1):
    shutil.copytree(kit, target, ignore=lambda folder, names: set(names) - {"startup", "local"}
                    if folder == str(kit) else set())  # fmt: skip
    path = target / "startup" / "client.crt"
    valid = x509.load_pem_x509_certificate(path.read_bytes())
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(valid.subject)
        .issuer_name(valid.issuer)
        .public_key(valid.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 30 * DAY)
        .not_valid_after(now + days * DAY)
    )
    for extension in valid.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    certificate = builder.sign(authority, hashes.SHA256())
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return target


def accepted(kit, port):
    """Whether a server keeps the connection of a kit's certificate open; FLARE's says no word."""
    startup = kit / "startup"
    context = ssl.create_default_context(cafile=startup / "rootCA.pem")
    context.load_cert_chain(startup / "client.crt", startup / "client.key")
    with (
        socket.create_connection(("localhost", port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        try:
            return secure.recv(1) != b""
        except TimeoutError:
            return True
        except ssl.SSLError:
            return False

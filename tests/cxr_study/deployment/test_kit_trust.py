import datetime
import re
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cxr_study.deployment.kit_trust import distrust

DAY = datetime.timedelta(days=1)
YESTERDAY = datetime.datetime.now(datetime.timezone.utc) - DAY
OURS, THEIRS = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))


def made(by=OURS, ends=2, issuer="ours"):
    """A certificate that ends so many days after yesterday."""
    subject, signer = (
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)]) for text in ("ours", issuer)
    )
    begin, end = YESTERDAY - 9 * DAY, YESTERDAY + ends * DAY
    builder = x509.CertificateBuilder(signer, subject, OURS.public_key(), 1, begin, end)
    certificate = builder.sign(by, hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize(("own", "server", "said"), [
    (made(), made(), None),
    (made(), None, None),  # it shows none
    (made(), made(THEIRS), "not made for this server: .*'CN=ours' of 2.* signed the server's"),
    (made(), made(THEIRS, issuer="theirs"), "has not signed the server's certificate"),
    (made(ends=0), None, rf"client\.crt of kit .*lead ended on {YESTERDAY:%Y-%m-%d}\. "),
    (made(), made(ends=0), "the server's certificate ended on"),
], ids=["fits", "none", "other key", "other root", "ended", "server's ended"])  # fmt: skip
def test_what_keeps_a_kit_and_a_server_apart_is_named(tmp_path, monkeypatch, own, server, said):
    def shown(address, timeout):
        if server is None or address != ("hub", 8002):
            raise ssl.SSLError("no certificate was given")
        return server

    monkeypatch.setattr(ssl, "get_server_certificate", shown)
    (tmp_path / "lead/startup").mkdir(parents=True)
    for name, content in (("rootCA.pem", made()), ("client.crt", own)):
        (tmp_path / "lead/startup" / name).write_text(content)
    admin = {"host": "hub", "port": "8002", "ca_cert": "rootCA.pem", "client_cert": "client.crt"}
    found = distrust(tmp_path / "lead", admin)
    assert re.search(said, found) if said else found is None

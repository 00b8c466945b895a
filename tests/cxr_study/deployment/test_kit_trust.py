import datetime
import re
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cxr_study.deployment.kit_trust import distrust, unreachable

NOW = datetime.datetime.now(datetime.timezone.utc)
OURS, THEIRS = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
FILES = {"ca_cert": "rootCA.pem", "client_cert": "client.crt"}
PAST, LATER = (-9, -1), (1, 2)


def made(name, issuer="ours", by=OURS, days=(-1, 1)):
    """A certificate, valid between days from now."""
    subject, signer = (
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)]) for text in (name, issuer)
    )
    begin, end = (NOW + datetime.timedelta(days=day) for day in days)
    number = x509.random_serial_number()
    builder = x509.CertificateBuilder(signer, subject, OURS.public_key(), number, begin, end)
    certificate = builder.sign(by, hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"server": None}, None),  # it shows none
        ({"server": made("hub", by=THEIRS)}, "not made for this server: .*CN=ours' of 2.* has not"),
        ({"server": made("hub", "theirs", THEIRS)}, r"signed the server's certificate, 'CN=hub'"),
        ({"client.crt": made("lead", by=THEIRS)}, "signed client.crt of kit .*and all its files"),
        ({"client.crt": made("lead", days=PAST)}, f"lead is valid .* and today is {NOW:%Y-%m-%d}"),
        ({"client.crt": made("lead", days=LATER)}, "or set the clock"),
        ({"rootCA.pem": made("ours", days=PAST)}, "rootCA.pem of kit .* is valid from"),
        ({"server": made("hub", days=PAST)}, "the server's certificate is valid from"),
    ],
)
def test_what_keeps_a_kit_and_a_server_apart_is_named(tmp_path, monkeypatch, change, said):
    def shown(address, timeout):
        if pems["server"] is None:
            raise ssl.SSLError("no certificate was given")
        return pems["server"] * (address == ("hub", 8002))

    monkeypatch.setattr(ssl, "get_server_certificate", shown)
    pems = {"rootCA.pem": made("ours"), "client.crt": made("lead"), "server": made("hub"), **change}
    startup = tmp_path / "lead/startup"
    startup.mkdir(parents=True)
    for name in FILES.values():
        (startup / name).write_text(pems[name])
    found = distrust(tmp_path / "lead", {"host": "hub", "port": "8002", **FILES})
    assert re.search(said, found) if said else found is None


def test_a_server_that_cannot_be_reached_is_told_from_one_that_listens(taken):
    assert unreachable("localhost", taken) is None
    assert unreachable("localhost", 1) == "nobody listens at localhost:1: Connection refused"
    assert "name" in unreachable("no.such.host.invalid", 1).lower()

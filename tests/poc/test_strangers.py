"""Strangers in a provisioned network: bad certificates, and a name that is not its own.

After the tests of what the server's files hold, for one of the strangers is let in.
"""

import datetime
import json
import shutil
import socket
import ssl
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

import deployed
import tiny_job
from cxr_study.deployment import processes
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.jobs import job_templates

DAY = datetime.timedelta(days=1)


def test_who_calls_itself_by_anothers_name_is_refused_under_its_own_and_the_victim_trains(network):
    """A site with a good certificate of its own, in its job's process."""
    folder, classes = network.folder / "guise", ["Edema", "Pleural Effusion"]
    job_templates.write("surgical", folder / "template", "installed")
    job = tiny_job.make(
        folder, {site: {"classes": classes, "images": 16} for site in ("nih", "mercy")},
        job=folder / "template", claims={"mercy": ["nih", classes]},
        settings={"num_rounds": 1, "warmup_epochs": 1, "min_clients": 1, "wait_seconds": 60},
    )  # fmt: skip
    result = deployed.run(network, job)
    assert result.status == "FINISHED:COMPLETED"
    refused = [event for event in result.record if event["event"] == "refused"]
    said = {(event["site"], event["task"], event["reason"]) for event in refused}
    tasks = ("train", "validate", "test")
    assert said == {("mercy", task, "it calls itself 'nih'") for task in tasks}
    assert result.last.manifest["classes"]["Edema"]["sites"] == ["nih"]


def copied(kit, target, authority, until):
    """A copy of a kit with a certificate that an authority signed and that is valid for a time."""
    for part in ("startup", "local"):
        shutil.copytree(kit / part, target / part)
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
        .not_valid_after(now + until)
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


def test_the_server_refuses_bad_certificates_and_they_disturb_nobody(network):
    """Two pass for mercy: one expired yesterday, one is another authority's of that name."""
    state = json.loads((network.server.parents[1] / "state" / "cert.json").read_text())
    own = serialization.load_pem_private_key(state["root_pri_key"].encode(), None)
    other = rsa.generate_private_key(65537, 2048)
    mercy, folder = network.kit("mercy"), network.folder / "impostors"
    impostors = [copied(mercy, folder / "1", own, -DAY), copied(mercy, folder / "2", other, DAY)]
    found = [accepted(kit, network.project.port) for kit in (mercy, *impostors)]
    assert found == [True, False, False]

    for kit in impostors:
        processes.start(kit, network.environment)
    logs = [kit / "log.txt" for kit in impostors]
    deadline = time.monotonic() + 60
    while not all(log.exists() and log.read_text() for log in logs):
        assert time.monotonic() < deadline, logs
        time.sleep(0.5)
    time.sleep(10)  # they try again and again
    with FlareSession(network.lead) as session:
        assert session.sites() == set(network.project.sites)
    for log in logs:
        assert "Successfully registered client" not in log.read_text()
    assert (network.server / "log.txt").read_text().count("New client mercy@") == 1

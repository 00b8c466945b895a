"""The tiny job on a real FLARE system of this machine: services, certificates, admin."""

import json
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import tiny_job
from cxr_deployment import processes
from cxr_deployment.flare_session import FlareSession
from cxr_deployment.poc_system import _KITS, MARK, PocProject, PocSystem
from cxr_deployment.site_kit import localise_server, localise_site
from cxr_study.runs.job_results import read_events
from surgical_aggregation.checkpoints.checkpoint import load

PROJECT = Path(__file__).parents[2] / "poc" / "project.yml"


class Network(PocSystem):
    """A system whose kits FLARE's own command provisions, and admins who use FLARE's commands.

    Stopped at the end of its `with` block.
    """

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def provision(self, sites):
        """Make the startup kits of the project, on a free port."""
        for name in ("home", "tmp"):
            (self.root / name).mkdir(parents=True)
        self.wanted(sites).write(self.root / MARK)
        self.nvflare("provision", "-p", self.root / MARK, "-w", self.root / _KITS)
        return self

    def wanted(self, sites):
        """The project whose kits are made."""
        return PocProject.read(PROJECT).changed(port=processes.free_port(), sites=sites)

    @property
    def admin(self):
        return self.kit(self.project.project_admin)

    def nvflare(self, *arguments):
        """Run FLARE's command; what it printed."""
        return self._output_of([sys.executable, "-m", "nvflare.cli", *map(str, arguments)])

    def console(self, kit, *commands):
        """What an admin's console says to commands that are piped into it."""
        typed = "\n".join([kit.name, *commands, "bye", ""])
        return self._output_of(["bash", str(kit / "startup" / "fl_admin.sh")], typed)

    def _output_of(self, command, typed=""):
        done = subprocess.run(
            command, env=self.environment, cwd=self.root, input=typed, capture_output=True,
            text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def preflight(self, name):
        """FLARE's verdict on a kit: "pass" or "fail". Never of a site that runs: see runbook."""
        report = self.nvflare("preflight-check", "-p", self.kit(name), "--format", "json")
        return json.loads(report)["data"]["overall"]

    def start_server(self, **environment):
        body = str(tiny_job.initial_body(self.root / "body.npz"))
        own = {"CXR_INITIAL_BODY": body, **environment}
        processes.start(self.server, {**self.environment, **own})
        self.wait()

    def wait(self):
        until(lambda: not processes.connection_error("localhost", self.project.port))

    def start_sites(self):
        for site in self.project.sites:
            processes.start(self.kit(site), self.environment)
        self._wait(self.project, 300)

    def localise(self, policies, permitted=None, **own):
        """Write the kits' local files as hospitals do, by site -> its policy."""
        own["allow"] = tiny_job.CLASSES
        for site, policy in policies.items():
            localise_site(self.kit(site), asdict(policy), **own)
        localise_server(self.server, self.folder / "storage", permitted=permitted, **own)


@contextmanager
def poc_system(folder, sites, *, permitted=None, project=PROJECT, **environment):
    """A running system of tiny sites {name: {"classes", "images"}}; always stopped.

    Jobs of `tiny_job.make` run on it. The services get `environment`, and the tiny network's
    initial body; the server the classes that sites are permitted. A test may stop and start it.
    """
    body = folder / "body.npz"
    if not body.is_file():
        tiny_job.initial_body(body)
    system = PocSystem(folder / "poc")
    system.prepare(project, sites=list(sites))
    if permitted is not None:
        own = {"permitted": permitted, "byoc": "anyone", "force": True}
        localise_server(system.server, folder / "storage", **own)
    try:
        system.start({"CXR_INITIAL_BODY": str(body), **environment}, timeout=300)
        yield system
    finally:
        system.stop()


def keeps_open(port, kit=None, seconds=5.0):
    """Whether who listens on a port keeps the connection of a kit's certificate, or of none, open.

    FLARE says no word when it does: so many seconds of silence.
    """
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if kit is not None:
        context.load_cert_chain(kit / "startup/client.crt", kit / "startup/client.key")
    with (
        socket.create_connection(("localhost", port), timeout=120) as plain,
        context.wrap_socket(plain) as secure,
    ):
        secure.settimeout(seconds)
        try:
            return secure.recv(1) != b""
        except TimeoutError:
            return True
        except ssl.SSLError:
            return False


def until(holds, seconds=180.0):
    """Wait until something holds, so many seconds at most; what it gives."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, holds
        time.sleep(0.2)
    return found


def run(system, job):
    """Submit a job as the lead; what it left."""
    with FlareSession(system.lead) as session:
        return ended(session, system, session.submit(job))


def ended(session, system, job_id):
    """Wait for a job's end; what it left: status, folder, record, and models if there are any."""
    meta = wait(session, job_id)
    server = session.download(job_id, system.folder / "downloads") / "workspace"
    models = {path.stem: load(path) for path in sorted((server / "models").glob("*.npz"))}
    return SimpleNamespace(
        job_id=job_id, meta=meta, status=meta["status"], server=server, record=read_events(server),
        last=models.get("last"), best=models.get("best"),
    )  # fmt: skip


def wait(session, job_id, *, holds=lambda meta: False, timeout=600.0):
    """Wait until something holds of a job, or it has ended; its facts."""

    def meta():
        meta = session.meta(job_id)
        return (meta["status"].startswith("FINISHED") or holds(meta)) and meta

    return until(meta, timeout)


def rounds(system, job_id):
    """Number of whole rounds that a running job has made."""
    record = system.server / job_id / "run_record.jsonl"
    with suppress(FileNotFoundError):  # not begun, or archived and removed
        return record.read_text().count('"event": "round"')
    return 0

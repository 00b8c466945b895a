"""A provisioned FLARE system of the tiny study on this machine: kits as real places get them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import tiny_job
from cxr_study.deployment import processes
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.deployment.poc_project import PocProject
from cxr_study.deployment.processes import free_port, listens

PROJECT = Path(__file__).parents[2] / "poc" / "project.yml"


class Provisioned:
    """The startup kits of the project, on a free port.

    Args:
        folder: For everything.
        sites: Names.
    """

    def __init__(self, folder, sites):
        self.folder = folder
        self.sites = tuple(sites)
        self.project = PocProject.read(PROJECT).changed(port=free_port(), sites=self.sites)
        for name in ("home", "tmp"):
            (folder / name).mkdir(parents=True)
        self.environment = {
            **os.environ,
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        self.project.write(folder / "project.yml")
        self.nvflare("provision", "-p", folder / "project.yml", "-w", folder / "kits")

    def kit(self, name):
        return self.folder / "kits" / self.project.name / "prod_00" / name

    @property
    def server(self):
        return self.kit(self.project.server["name"])

    @property
    def lead(self):
        return self.kit(self.project.lead)

    @property
    def admin(self):
        return self.kit(self.project.project_admin)

    def nvflare(self, *arguments):
        """Run FLARE's command; what it printed."""
        return self._said([sys.executable, "-m", "nvflare.cli", *map(str, arguments)])

    def console(self, kit, *commands):
        """What an admin's console says to commands that are piped into it."""
        typed = "\n".join([kit.name, *commands, "bye", ""])
        return self._said(["bash", str(kit / "startup" / "fl_admin.sh")], typed)

    def _said(self, command, typed=""):
        done = subprocess.run(
            command, env=self.environment, cwd=self.folder, input=typed, capture_output=True,
            text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def preflight(self, name):
        """FLARE's verdict on a kit: "pass" or "fail". Never of a site that runs: see runbook."""
        said = self.nvflare("preflight-check", "-p", self.kit(name), "--format", "json")
        return json.loads(said)["data"]["overall"]

    def start_server(self):
        """Start the server as its kit says, with the tiny network's initial body."""
        body = tiny_job.initial_body(self.folder / "body.npz")
        processes.start(self.server, {**self.environment, "CXR_INITIAL_BODY": str(body)})
        self.wait()

    def wait(self):
        """Wait until the server listens."""
        deadline = time.monotonic() + 60
        while not listens("localhost", self.project.port):
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def start_sites(self):
        """Start the sites as their kits say, and wait for them."""
        for site in self.sites:
            processes.start(self.kit(site), self.environment)
        deadline = time.monotonic() + 60
        with FlareSession(self.lead) as session:
            while session.sites() != set(self.sites):
                assert time.monotonic() < deadline, session.sites()
                time.sleep(0.2)

    def stop(self):
        """End whatever runs."""
        processes.end(self.folder)

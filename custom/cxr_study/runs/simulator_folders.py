"""Where FLARE's simulator leaves what a run made; needs no FLARE."""

from pathlib import Path


def server_folder(workspace: Path) -> Path:
    """Folder of the server's results in a simulator workspace."""
    return workspace / "server" / "simulate_job"


def checkpoint_folder(workspace: Path, party: str = "server") -> Path:
    """Folder of the models of the server, or of a site's files, in a simulator workspace."""
    return workspace / party / "checkpoints" / "simulate_job"

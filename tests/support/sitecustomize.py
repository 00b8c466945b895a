"""Python runs this at start: with CAPTURE_FOLDER set, a client process keeps all it receives."""

import os
import sys
from pathlib import Path

_JOB = "nvflare.private.fed.app.client.worker_process"
_PARENT = "nvflare.private.fed.app.client.client_train"
_SIMULATED = "nvflare.private.fed.app.simulator.simulator_worker"

_folder = os.environ.get("CAPTURE_FOLDER")
_words = sys.orig_argv


def _client():
    """Of a site's process, the name of its file: the site, or <site>.parent; of any other None."""
    if _SIMULATED in _words:
        return _words[_words.index("--client") + 1]
    for module, end in ((_JOB, ""), (_PARENT, ".parent")):
        if module in _words:
            kit = _words[_words.index(module) + 2]  # -m <module> -m <startup kit>
            return Path(kit).name + end
    return None


if _folder and _client():
    from nvflare.fuel.f3.sfm.conn_manager import ConnManager

    _process_frame = ConnManager.process_frame

    def _keep(self, sfm_conn, frame):
        with Path(_folder, _client()).open("ab") as file:
            file.write(bytes(frame))
        return _process_frame(self, sfm_conn, frame)

    ConnManager.process_frame = _keep

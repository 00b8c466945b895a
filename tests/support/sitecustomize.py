"""Python runs this at start: with CAPTURE_FOLDER set, a client process keeps all it receives."""

import os
import sys
from pathlib import Path

_PROCESSES = {
    "nvflare.private.fed.app.client.worker_process": "",
    "nvflare.private.fed.app.client.client_train": ".parent",
    "nvflare.private.fed.app.simulator.simulator_worker": "",
}
_folder, _words = os.environ.get("CAPTURE_FOLDER"), sys.orig_argv
_module = next((module for module in _PROCESSES if module in _words), None)

if _folder and _module:
    from nvflare.fuel.f3.sfm.conn_manager import ConnManager

    if "--client" in _words:
        _site = _words[_words.index("--client") + 1]
    else:
        _site = Path(_words[_words.index(_module) + 2]).name  # -m <module> -m <startup kit>
    _process_frame = ConnManager.process_frame

    def _keep(self, sfm_conn, frame):
        with Path(_folder, _site + _PROCESSES[_module]).open("ab") as file:
            file.write(bytes(frame))
        return _process_frame(self, sfm_conn, frame)

    ConnManager.process_frame = _keep

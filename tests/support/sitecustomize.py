"""Python runs this at start: with CAPTURE_FOLDER set, a client process keeps all it receives."""

import os
import sys
from pathlib import Path

_folder = os.environ.get("CAPTURE_FOLDER")
_command = " ".join(sys.orig_argv)

if _folder and "simulator_worker" in _command:
    from nvflare.fuel.f3.sfm.conn_manager import ConnManager

    _client = sys.orig_argv[sys.orig_argv.index("--client") + 1]
    _process_frame = ConnManager.process_frame

    def _keep(self, sfm_conn, frame):
        with Path(_folder, _client).open("ab") as file:
            file.write(bytes(frame))
        return _process_frame(self, sfm_conn, frame)

    ConnManager.process_frame = _keep

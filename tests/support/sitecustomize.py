"""Python runs this at start.

With CAPTURE_FOLDER set, a client process keeps all it receives. With STOP_AFTER_A_ROUND set, the
simulator of a study suspends itself after a round.
"""

import os
import signal
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

if os.environ.get("STOP_AFTER_A_ROUND") and "cxr_study.runs.patched_simulator" in _words:
    from surgical_aggregation.server.records.run_record import RunRecord

    _write = RunRecord._write

    def _write_and_stop(self, event, **facts):
        _write(self, event, **facts)
        if event == "round":
            os.kill(os.getpid(), signal.SIGSTOP)

    RunRecord._write = _write_and_stop

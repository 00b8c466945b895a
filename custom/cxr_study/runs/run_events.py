"""What a run has written into its record so far."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from surgical_aggregation.server.records.run_record import RECORD_FILE


def read_events(server: Path) -> list[dict]:
    """Events of a run (see `run_record.RunRecord`), whole ones; none before it starts.

    A newer version may write others: who reads them looks for the kinds that he knows.

    Args:
        server: The server's folder of the job.
    """
    path = server / RECORD_FILE
    if not path.is_file():
        return []
    events = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with suppress(json.JSONDecodeError):  # a line that a kill or a full disk has torn
            events.append(json.loads(line))
    return events

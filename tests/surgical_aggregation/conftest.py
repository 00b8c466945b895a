"""What tests of server components share."""

import pytest
from nvflare.apis.fl_component import FLComponent


@pytest.fixture
def panics(monkeypatch):
    """Reasons with which components ended the run."""
    reasons = []
    monkeypatch.setattr(
        FLComponent, "system_panic", lambda self, reason, fl_ctx: reasons.append(reason)
    )
    return reasons

"""A site's answer to the question whether it can take part; see `SiteCheck`, which asks."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable

from surgical_aggregation.wire.headers import (
    BODY_SHAPES,
    CANNOT,
    CERTIFICATE_DAYS,
    FAULT,
    FREE_DISK,
    NETWORK,
)

if TYPE_CHECKING:
    from surgical_aggregation.site.training.trainer import LocalTraining

_MODELS = 10
"""Models for which a site needs room: its state of two rounds with an optimizer's two moments and
personal variables, its last and its best model, and as many while they are written."""

_EXAMPLES = 3


def fault(question: Shareable, training: LocalTraining | None, fl_ctx: FLContext) -> str | None:
    """What the server, the network or the disk has against a site's taking part; None: nothing.

    The reason may be told: it has no file's path, no count of data and no class that the server has
    not named. `training` is None where the site's own files are not usable.
    """
    if reason := fl_ctx.get_peer_context().get_prop(FAULT):
        return f"the server refuses it: {reason}"
    if training is None:
        return None
    asked, own = from_shareable(question).data, training.variables()
    if reason := network_fault(
        asked[BODY_SHAPES],
        {path: list(v.shape) for path, v in own.items() if path not in training.head},
        asked[NETWORK],
        training.site.network_facts,
    ):
        return reason
    need, free = _MODELS * sum(value.nbytes for value in own.values()), _free_disk(fl_ctx)
    if free < need:
        return (
            f"its disk needs {need / 1e6:,.1f} MB for its own models and state; {free / 1e6:,.1f} "
            "MB are free. Make room there"
        )
    return None


def network_fault(
    body: Mapping[str, list[int] | None],
    own: Mapping[str, list[int]],
    network: Mapping[str, Any],
    own_network: Mapping[str, Any],
) -> str | None:
    """How the server's body differs from a site's own; None: it does not.

    Args:
        body: Path -> shape, None where it is not known.
        own: The same of the site.
        network: What the server's manifest says of the network, e.g. its backbone.
        own_network: See `Site.network_facts`.
    """
    differ = sorted(body.keys() ^ own.keys())
    differ = differ or sorted(p for p, shape in own.items() if body[p] not in (None, shape))
    if not differ:
        return None
    facts = [
        f"{name} is {network[name]!r} there, {own_network[name]!r} at the site; "
        for name in network.keys() & own_network.keys()
        if network[name] != own_network[name]
    ]
    return (
        f"the server's body is not that of the site's network: {''.join(sorted(facts))}"
        f"{len(differ)} variables differ, e.g. {differ[:_EXAMPLES]}. Start from an initial body of "
        "the job's network"
    )


def answer(reason: str | None, fl_ctx: FLContext) -> Shareable:
    """What a site tells: why it cannot take part (None: it can), its disk and certificate."""
    data = {
        CANNOT: reason,
        FREE_DISK: _free_disk(fl_ctx),
        CERTIFICATE_DAYS: _certificate_days(fl_ctx),
    }
    return DXO(DataKind.APP_DEFINED, data=data).to_shareable()


def _root(fl_ctx: FLContext) -> Path:
    return Path(fl_ctx.get_engine().get_workspace().get_root_dir())


def _free_disk(fl_ctx: FLContext) -> int:
    return shutil.disk_usage(_root(fl_ctx)).free


def _certificate_days(fl_ctx: FLContext) -> int | None:
    """Days until the certificate in the site's kit ends; None where there is none (simulator)."""
    file = _root(fl_ctx) / "startup" / "client.crt"
    if not file.is_file():
        return None
    from cryptography import x509

    end = x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc
    return (end - datetime.now(timezone.utc)).days

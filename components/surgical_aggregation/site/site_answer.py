"""Check whether a site can participate (filters, network, disk), and reply to `SiteCheck`."""

from __future__ import annotations

import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.dxo_filter import DXOFilter
from nvflare.apis.filter import Filter, FilterContextKey, FilterSource
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.filters.percentile_privacy import PercentilePrivacy
from nvflare.app_common.filters.svt_privacy import SVTPrivacy

from surgical_aggregation.site.contract.site import SiteError, check_body, shapes_of
from surgical_aggregation.wire import flare_internals, headers

if TYPE_CHECKING:
    from surgical_aggregation.site.training.trainer import LocalTraining

_KINDS = {"weights": DataKind.WEIGHTS, "differences": DataKind.WEIGHT_DIFF}

_MODELS = 10
"""Models that a site's disk must hold: its state of two rounds with the optimizer's two moments and
personal variables, its last and its best model, and a temporary file of each."""


def check(request: Shareable, training: LocalTraining | None, fl_ctx: FLContext) -> None:
    """Check that this site can participate: the server's verdict, keys, network and disk.

    The reason may be sent to the server: it contains no path, no count of images, and no class that
    the server has not named.

    Args:
        request: The task of `SiteCheck`.
        training: The site's training; None: the site's files are unusable.
        fl_ctx: Context of the task.

    Raises:
        SiteError: This site cannot participate.
    """
    if fault := fl_ctx.get_peer_context().get_prop(headers.FAULT):
        raise SiteError(f"the server refuses it: {fault}")
    if fault := fl_ctx.get_prop(headers.NO_KEYS):
        raise SiteError(fault)
    if training is None:
        return
    own, servers = training.variables(), from_shareable(request).data
    here, there = training.site.network_facts, servers[headers.NETWORK]
    network = "".join(
        f"; {name} is {there[name]!r} there and {here[name]!r} here"
        for name in sorted(there.keys() & here.keys())
        if there[name] != here[name]
    )
    if network and not servers[headers.TRAINS]:
        raise SiteError(f"the model cannot be measured with other settings{network}")
    shapes = servers[headers.BODY_SHAPES].items()
    body = {path: None if shape is None else tuple(shape) for path, shape in shapes}
    in_body = {path: value for path, value in own.items() if path not in training.head}
    check_body(body, shapes_of(in_body), network)
    need, free = _MODELS * sum(value.nbytes for value in own.values()), _free_disk(fl_ctx)
    if free < need:
        raise SiteError(
            f"it needs {need / 1e6:,.1f} MB of disk space for its models and state; "
            f"{free / 1e6:,.1f} MB are free. Free some space there."
        )


def answer(reason: str | None, fl_ctx: FLContext) -> Shareable:
    """Reply to `SiteCheck`: why the site cannot participate (None: it can), disk, certificate."""
    data = {
        headers.CANNOT: reason,
        headers.FREE_DISK: _free_disk(fl_ctx),
        headers.CERTIFICATE_DAYS: _certificate_days(fl_ctx),
    }
    return DXO(DataKind.APP_DEFINED, data=data).to_shareable()


def _root(fl_ctx: FLContext) -> Path:
    return Path(fl_ctx.get_engine().get_workspace().get_root_dir())


def _free_disk(fl_ctx: FLContext) -> int:
    return shutil.disk_usage(_root(fl_ctx)).free


def _certificate_days(fl_ctx: FLContext) -> int | None:
    """Days until the certificate in the site's kit expires; None: there is none (simulator)."""
    file = _root(fl_ctx) / "startup" / "client.crt"
    if not file.is_file():
        return None
    from cryptography import x509

    end = x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc
    return (end - datetime.now(timezone.utc)).days


def check_filters(send: str, fl_ctx: FLContext) -> None:
    """Refuse result filters that would silently pass this site's models unchanged.

    PercentilePrivacy and SVTPrivacy are meant for differences and would clip weights wrongly. Other
    filters of FLARE declare the kinds of data that they act on. Filters that declare nothing are
    not checked.

    Args:
        send: "weights" or "differences".
        fl_ctx: Context of the run, with the filters of the site's scope and of the job.

    Raises:
        SiteError: A filter acts only on differences, or only on weights, and would receive the
            other.
    """
    (needed,) = _KINDS.keys() - {send}
    for task in ("train", "refit"):
        for each in flare_internals.result_filters(task, fl_ctx):
            if not _acts_on(_KINDS[send], each):
                own = each.get_prop(FilterContextKey.SOURCE) == FilterSource.SITE
                raise SiteError(
                    f"the filter {type(each).__name__} of "
                    f"{'this site, in local/privacy.json,' if own else 'the job'} needs {needed}; "
                    f"it would receive {send} and pass them unchanged. Set the executor's "
                    f'send = "{needed}", or remove the filter.'
                )


def _acts_on(kind: str, each: Filter) -> bool:
    """Whether a filter acts on a kind of model; true if unknown, or if it is not for models."""
    if isinstance(each, (PercentilePrivacy, SVTPrivacy)) and kind == DataKind.WEIGHTS:
        return False
    kinds = set(each.data_kinds or ()) if isinstance(each, DXOFilter) else set()
    return kind in kinds or not kinds & set(_KINDS.values())

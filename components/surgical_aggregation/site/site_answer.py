"""Whether a site can take part, by filters, network and disk; what it tells `SiteCheck` of that."""

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
"""Models for which a site needs room: its state of two rounds with an optimizer's two moments and
personal variables, its last and its best model, and as many while they are written."""


def check(question: Shareable, training: LocalTraining | None, fl_ctx: FLContext) -> None:
    """Refuse to take part where the server says so, or by keys, network or disk.

    The reason may be told: it has no file's path, no count of data and no class that the server has
    not named. `training` is None where the site's own files are not usable.

    Raises:
        SiteError: This site cannot take part.
    """
    if fault := fl_ctx.get_peer_context().get_prop(headers.FAULT):
        raise SiteError(f"the server refuses it: {fault}")
    if fault := fl_ctx.get_prop(headers.NO_KEYS):
        raise SiteError(fault)
    if training is None:
        return
    own, asked = training.variables(), from_shareable(question).data
    here, there = training.site.network_facts, asked[headers.NETWORK]
    network = "".join(
        f"; {name} is {there[name]!r} there and {here[name]!r} here"
        for name in sorted(there.keys() & here.keys())
        if there[name] != here[name]
    )
    shapes = asked[headers.BODY_SHAPES].items()
    body = {path: None if shape is None else tuple(shape) for path, shape in shapes}
    in_body = {path: value for path, value in own.items() if path not in training.head}
    check_body(body, shapes_of(in_body), network)
    need, free = _MODELS * sum(value.nbytes for value in own.values()), _free_disk(fl_ctx)
    if free < need:
        raise SiteError(
            f"its disk needs {need / 1e6:,.1f} MB for its own models and state; {free / 1e6:,.1f} "
            "MB are free. Make room there."
        )


def answer(reason: str | None, fl_ctx: FLContext) -> Shareable:
    """What a site tells: why it cannot take part (None: it can), its disk and certificate."""
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
    """Days until the certificate in the site's kit ends; None where there is none (simulator)."""
    file = _root(fl_ctx) / "startup" / "client.crt"
    if not file.is_file():
        return None
    from cryptography import x509

    end = x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc
    return (end - datetime.now(timezone.utc)).days


def check_filters(send: str, fl_ctx: FLContext) -> None:
    """Refuse a filter that would let this site's models pass as they are, without a word.

    PercentilePrivacy and SVTPrivacy limit changes: they take whole weights for changes, which no
    limit fits. Other filters of FLARE's name the kinds of model that they act on. What a filter of
    another make needs is not known.

    Args:
        send: "weights" or "differences".
        fl_ctx: Context of the run; its filters are those of the site's own scope, and the job's.

    Raises:
        SiteError: A filter acts on differences alone, or on whole weights alone, and would get the
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
                    f"it would get {send}, and let them pass as they are. Set the job's "
                    f'send = "{needed}", or take the filter out.'
                )


def _acts_on(kind: str, each: Filter) -> bool:
    """Whether a filter acts on a kind of model; true where it is not for models, or not known."""
    if isinstance(each, (PercentilePrivacy, SVTPrivacy)) and kind == DataKind.WEIGHTS:
        return False
    kinds = set(each.data_kinds or ()) if isinstance(each, DXOFilter) else set()
    return kind in kinds or not kinds & set(_KINDS.values())

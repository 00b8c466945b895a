"""FLARE contexts for unit tests: what a component sees of a message, without a server."""

import json
import shutil
import tempfile
import weakref
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, MetaKey
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey, ReservedKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation.aggregation.batch_norm_strategy import VariableKinds
from surgical_aggregation.server.access.job_sites import set_site
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.site.local_notes import notes_file
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import CLASSES, LACKING, POSITIVES, VERSIONS
from surgical_aggregation.wire.versions import installed_versions


class Engine:
    """Components by id, a workspace in a folder, and the events fired but those of logging.

    Where no folder is given, a new one is made when it is needed.
    """

    def __init__(self, folder=None, **components):
        self.components, self._folder = components, folder
        self.events, self.logged, self.sites = [], [], []

    @cached_property
    def folder(self):
        if self._folder:
            return self._folder
        made = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, made)
        return Path(made)

    def get_component(self, component_id):
        return self.components.get(component_id)

    def get_all_components(self):
        return self.components

    def new_context(self):
        return context(engine=self)

    def get_clients(self):
        return [SimpleNamespace(name=site) for site in self.sites]

    def get_workspace(self):
        return SimpleNamespace(
            get_run_dir=lambda job: str(self.folder / "server" / job),
            get_root_dir=lambda: str(self.folder / "server"),
        )

    def notes(self, job="job"):
        """The site's notes, "what: reason" for an error."""
        path = self.folder / "server" / notes_file(job)
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        facts = [json.loads(line) if line.startswith("{") else {"note": line} for line in lines]
        line = "{what}: {reason}"
        return "\n".join(of["note"] if "note" in of else line.format(**of) for of in facts)

    def fire_event(self, event_type, fl_ctx):
        logs = event_type.endswith("_log_available")
        (self.logged if logs else self.events).append(event_type)
        for component in self.components.values():
            if isinstance(component, FLComponent):
                component.handle_event(event_type, fl_ctx)


def context(
    site=None, classes=(), current_round=0, model=None, engine=None, policy=None, claims=None,
    authenticated=True, versions=None, props=(), manager=None,
):  # fmt: skip
    """The server's context of a message from or to `site`.

    `policy`: properties of its scope; `claims`: what the site calls itself, if not by its name;
    `authenticated`: whose message it is; `versions`: what it tells of them, if not those here;
    `props`: private properties; `manager`: FLARE's, of contexts that share what is sticky.
    """
    fl_ctx = FLContext()
    if manager:
        fl_ctx.put(ReservedKey.MANAGER, manager, private=True, sticky=False)
    fl_ctx.set_prop(ReservedKey.ENGINE, engine or Engine(), private=True, sticky=False)
    fl_ctx.set_prop(ReservedKey.RUN_NUM, "job", private=False, sticky=False)
    fl_ctx.set_prop(AppConstants.CURRENT_ROUND, current_round, private=True, sticky=False)
    fl_ctx.set_prop(AppConstants.START_ROUND, 0, private=True, sticky=False)
    if model is not None:
        fl_ctx.set_prop(AppConstants.GLOBAL_MODEL, model.to_learnable(), private=True, sticky=True)
    if policy is not None:
        fl_ctx.set_prop(FLContextKey.SCOPE_PROPERTIES, policy, private=True, sticky=True)
    for name, value in dict(props).items():
        fl_ctx.set_prop(name, value, private=True, sticky=False)
    if site is not None:
        peer = FLContext()
        peer.set_prop(ReservedKey.IDENTITY_NAME, claims or site, private=False, sticky=False)
        reported = installed_versions() if versions is None else versions
        peer.set_prop(VERSIONS, reported, private=False, sticky=True)
        if classes:
            peer.set_prop(CLASSES, list(classes), private=False, sticky=True)
        fl_ctx.set_peer_context(peer)
        if authenticated:
            set_site(site, fl_ctx)
    return fl_ctx


def site_context(name, engine, policy=None):
    """A site's own context in a run."""
    fl_ctx = context(engine=engine, policy=policy)
    fl_ctx.set_prop(ReservedKey.IDENTITY_NAME, name, private=False, sticky=False)
    return fl_ctx


def column(value):
    """A column of two features, all of one value."""
    return (np.full(2, value, np.float32), np.float32([value]))


def lists(variables):
    """Values of variables, by name."""
    return {name: value.tolist() for name, value in variables.items()}


def global_model(body, columns=None, features=2, batch_norm=()):
    """A global model whose columns weigh `features` features."""
    manifest = {"head_features": features, **VariableKinds(frozenset(batch_norm)).facts()}
    return GlobalModel(wire.join(body, columns or {}), manifest)


def result(
    body, columns, *, kind=DataKind.WEIGHTS, current_round=0, samples=None, positives=None,
    metrics=None, lacking=None,
):  # fmt: skip
    """A site's training result as it arrives at the server."""
    meta = {
        MetaKey.NUM_STEPS_CURRENT_ROUND: samples, POSITIVES: positives,
        MetaKey.INITIAL_METRICS: metrics, LACKING: lacking,
    }  # fmt: skip
    meta = {key: value for key, value in meta.items() if value is not None}
    shareable = DXO(kind, data=wire.join(body, columns), meta=meta).to_shareable()
    shareable.add_cookie(AppConstants.CONTRIBUTION_ROUND, current_round)
    return shareable

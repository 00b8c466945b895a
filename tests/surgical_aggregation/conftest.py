"""What tests of components share."""

import json

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent

from flare import Engine, site_context
from numpy_model import ArraySite, LocalModel
from one_process import executor_with
from surgical_aggregation.site.training import tensorflow_setup
from tiny_site import TinySite, tiny_model
from tiny_tasks import Process


@pytest.fixture
def panics(monkeypatch):
    """Reasons with which components ended the run."""
    reasons = []
    monkeypatch.setattr(FLComponent, "system_panic", lambda self, why, _: reasons.append(why))
    return reasons


@pytest.fixture
def logged(monkeypatch):
    """Texts that components log, by level."""
    texts = {level: [] for level in ("info", "warning", "error")}
    for level, lines in texts.items():

        def log(self, fl_ctx, text, fire_event=True, lines=lines):
            lines.append(text)

        monkeypatch.setattr(FLComponent, f"log_{level}", log)
    return texts


@pytest.fixture(scope="module")
def body():
    """A body of the tiny network, by path."""
    variables = {v.path: v.numpy() for v in tiny_model(1).variables}
    return {name: v for name, v in variables.items() if not name.startswith("head/")}


@pytest.fixture
def tiny(tmp_path):
    """Makes the tiny site "north" with 20 images and some classes."""

    def make(*classes):
        table = tmp_path / "sites.json"
        table.write_text(json.dumps({"north": {"classes": classes, "images": 20}}))
        return TinySite("north", str(table))

    return make


@pytest.fixture
def site(tiny):
    """The tiny site of the executors of `start`."""
    return tiny("Edema", "Nodule/Mass")


@pytest.fixture
def array_site(site, monkeypatch):
    """The same, trained with NumPy, for tests of everything around training."""
    from surgical_aggregation.site.training import trainer

    monkeypatch.setattr(trainer, "LocalModel", LocalModel)
    return ArraySite(site.site, site.table)


@pytest.fixture
def start(site, monkeypatch, tmp_path):
    """Start an executor; TensorFlow has begun in this process, so its set-up is left out."""
    import keras

    monkeypatch.setattr(tensorflow_setup, "configure", lambda *args: False)

    def make(policy=None, **args):
        engine = Engine(tmp_path, site=site)
        fl_ctx = site_context("north", engine, policy)
        keras.utils.set_random_seed(0)
        executor = executor_with({"warmup_epochs": 1, **args})
        for event in (EventType.ABOUT_TO_START_RUN, EventType.START_RUN):
            executor.handle_event(event, fl_ctx)
        make.notes = engine.notes
        return executor, fl_ctx

    return make


@pytest.fixture
def process(start, body):
    """Starts a process of the job at the site."""
    return lambda **args: Process(start, body, **args)

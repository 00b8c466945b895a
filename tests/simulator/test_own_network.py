"""A network of a researcher's own file, with every command, in a folder that is no package."""

from functools import partial

import pandas as pd
import pytest

from cxr_phantom.writers.write_phantom import write_phantom
from typed import Typist

MODULE = """
import keras
from keras import layers

from cxr_study.training.backbones import Backbone, Normalisation


def stripes(shape):
    inputs = keras.Input(shape)
    x = layers.Conv2D(4, (7, 1), strides=3, activation="relu", name="lines")(inputs)
    return keras.Model(inputs, layers.GlobalAveragePooling2D(name="pool")(x))


STRIPES = Backbone(stripes, Normalisation(128, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)))
"""


@pytest.fixture(scope="module")
def surgagg(tmp_path_factory):
    typist = Typist(tmp_path_factory.mktemp("own_network"))
    (typist.home / "my_networks.py").write_text(MODULE)
    write_phantom(typist.home / "phantom", images_per_site=60, size=32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXR_BACKBONES", "my_networks:STRIPES,my_networks:stripes")
        patch.setenv("PYTHONPATH", str(typist.home))
        yield typist


def test_it_is_trained_compared_used_and_exported(surgagg):
    done = partial(surgagg.output_of, "surgagg")
    settings = ("warmup_epochs=1", "image_size=32", "num_rounds=1", "backbone=STRIPES")
    small = [word for setting in settings for word in ("--set", setting)]
    data = ("--site-files", "phantom/sites", "--initial-body", "body.npz", *small)
    init = ("--weights", "none", "--image-size", 32)
    done("model", "init", "body.npz", "--backbone", "STRIPES", *init)
    done("run", "surgical", "--out", "run", "--local-models", "--published", *data)
    done("baseline", "centralised-partial", "--out", "pooled", *data)
    done("predict", "run", "phantom/nih/images", "--out", "p.csv")
    done("export", "run", "--to", "keras", "--out", "chest.keras")
    done("model", "package", "run", "--out", "package")
    predicted = pd.read_csv(surgagg.home / "p.csv")
    assert len(predicted) >= 60 and predicted["Edema"].between(0, 1).all()
    done("model", "init", "other.npz", "--backbone", "stripes", *init)


def test_what_nobody_has_named_is_not_imported(surgagg):
    for name in ("my_networks:STRIPES", "my_networks", "os:system"):
        call = surgagg("run", "surgical", "--phantom", "--set", f"backbone={name}")
        assert call.code == 2 and f"setting 'backbone' has no value {name!r}" in call.err
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXR_BACKBONES", "my_networks:CURLS")
        call = surgagg("model", "init", "no.npz", "--backbone", "CURLS", "--weights", "none")
    assert call.code == 2 and "there is no CURLS in module 'my_networks'" in call.err

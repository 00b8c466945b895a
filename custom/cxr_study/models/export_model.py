"""Write a model for other programs: a file that runs without this package, or a hub's folder."""

from __future__ import annotations

import importlib.util
import json
import warnings
import zipfile
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image

from cxr_study.common.files import whole
from cxr_study.common.offered_data import demo_data
from cxr_study.data.images.decoding import square
from cxr_study.models import OUTPUT, Format
from cxr_study.models.loaded_model import LoadedModel
from cxr_study.models.model_calibration import as_json
from cxr_study.training.network import SiteNetwork
from surgical_aggregation.checkpoints.checkpoint import digest, save
from surgical_aggregation.site.training.tensorflow_setup import quietly

if TYPE_CHECKING:
    import keras

METADATA = "surgical_aggregation.json"
"""Name of the facts in a file; see `metadata`."""

TOLERANCE = 1e-4
"""Of probabilities on other machines, whose processors add in another order."""

_SIDE = 32  # of an input that may have any size, to try it
_OTHER = "It is removed; take another format, or the checkpoint."


class _Target(NamedTuple):
    suffix: str
    needs: tuple[str, ...]  # modules, of the extra "export"
    write: Callable[[keras.Model, Path, str], None]
    run: Callable[[Path, np.ndarray], np.ndarray]  # of the file, from its input to probabilities


def export(model: LoadedModel, to: Format, out: Path) -> None:
    """Write a model with resizing and normalisation inside.

    Its input is called "pixels": grey images (n, height, width) of any height and width, float32, 0
    black to 255 white (Keras and SavedModel: uint8 as well, the latter by `serve_uint8`); of a
    `Site` of somebody's own it is called "images" and is what its network takes, float32. Its
    output is `OUTPUT`. Probabilities are the model's own: a calibration is in the `metadata` alone.
    What was written is run once, on `reference`.

    Args:
        model: Which model.
        to: "keras": one file for Keras 3; "savedmodel": a folder for TensorFlow, its signature
            `serving_default`; "onnx": one file.
        out: New file or folder.

    Raises:
        ValueError: The name has the wrong suffix, a converter is missing, or the file does not
            run, or says something else than the model.
        FileExistsError: There is such a file.
        CheckpointError: The model has no class.
        CalibrationError: The model's calibration is that of another model.
    """
    target = _TARGETS[to]
    if target.suffix and out.suffix != target.suffix:
        raise ValueError(f"{to} needs a file {target.suffix}; got {out}.")
    if out.exists():
        raise FileExistsError(f"an exported model needs a new file; {out} exists. Give another.")
    if missing := [name for name in target.needs if importlib.util.find_spec(name) is None]:
        raise ValueError(
            f"{to} needs {' and '.join(missing)}, which is not installed: pip install "
            "'surgical-aggregation[export]'."
        )
    facts = metadata(model)
    write_network(exported(model), to, out, facts, reference(model))


def reference(model: LoadedModel) -> tuple[np.ndarray, np.ndarray]:
    """An input to try an exported model with, float32 (1, ...), and what the model says of it.

    A drawn chest, or noise for the network of a `Site` of somebody's own.
    """
    if isinstance(model.built_as, SiteNetwork):
        shape = [side or _SIDE for side in model.local.model.input_shape[1:]]
        noise = np.random.default_rng(0).normal(size=(1, *shape)).astype(np.float32)
        return noise, model.local.outputs(noise)[1]
    chest = demo_data().picture()
    small = np.asarray(square(Image.fromarray(chest), model.network.image_size))
    said = model.predictions(small[None]).probabilities.to_numpy()
    return chest[None].astype(np.float32), said


def default_name(model: Path, to: Format) -> Path:
    """How an exported model is called, in the current folder."""
    return Path(model.stem).with_suffix(_TARGETS[to].suffix)


def exported(model: LoadedModel) -> keras.Model:
    """The uncompiled network from what `export` says to `OUTPUT`; see `pixel_graph`."""
    trained = model.local.model
    import keras

    network = keras.Model(trained.input, trained.output, name=trained.name)
    if not isinstance(model.built_as, SiteNetwork):
        from cxr_study.models.pixel_graph import behind_pixels

        return behind_pixels(network, model.network.normalisation)
    images = keras.Input(network.input_shape[1:], name="images")
    return keras.Model(images, {OUTPUT: network(images)}, name="images_to_probabilities")


def metadata(model: LoadedModel) -> dict[str, Any]:
    """What a file says of itself: the classes in the output's order, and the manifest's facts.

    "calibration" has, for each class that has one, the curve that its output is still to be put
    through, and the threshold of the result; None: the model has no calibration of its own.

    Raises:
        CalibrationError: The model's calibration is that of another model.
    """
    facts = model.facts
    curves = model.calibration and {
        name: of.model_dump(include={"curve", "threshold"})
        for name, of in model.calibration.classes.items()
    }
    given = {"name": "pixels", "layout": "(images, height, width)", "black": 0, "white": 255}
    if isinstance(model.built_as, SiteNetwork):
        sides = ("any" if side is None else str(side) for side in model.local.model.input_shape[1:])
        given = {"name": "images", "layout": f"({', '.join(['images', *sides])})"}
    return {
        "classes": list(model.classes),
        "input": given,
        "output": OUTPUT,
        "calibration": curves,
        "model_sha256": digest(model.checkpoint.variables),
        "created": facts.created,
        "version": facts.version,
        "trained_by": {name: list(of.sites) for name, of in facts.trained.items()},
        "never_learned": facts.never_learned,
        "network": dict(facts.network),
        "intended_use": "Research use only; not for diagnosis.",
    }


def write_network(
    network: keras.Model,
    to: Format,
    out: Path,
    facts: Mapping[str, Any],
    example: tuple[np.ndarray, np.ndarray] | None = None,
) -> None:
    """Write a Keras model in a format, with facts inside; see `export`.

    Args:
        network: From its one input to `OUTPUT`.
        to: Format.
        out: New file or folder.
        facts: See `metadata`.
        example: An input and its probabilities, (1, classes). Default: it is not run.

    Raises:
        ValueError: It does not run, or says something else.
    """
    text = json.dumps(facts, indent=1) + "\n"
    with whole(out) as half, quietly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tf2onnx looks for types that NumPy 2 has no more
        _TARGETS[to].write(network, half, text)
        if example is not None:
            _check_runs(to, half, *example)


def _check_runs(to: Format, path: Path, given: np.ndarray, expected: np.ndarray) -> None:
    try:
        difference = float(np.abs(_TARGETS[to].run(path, given) - expected).max())
    except Exception as error:  # each runtime has its own
        reason = str(error).split("\n")[0].rstrip(".")
        raise ValueError(
            f"{path.name} was written, and does not run: {reason}. {_OTHER}"
        ) from error
    if not difference <= TOLERANCE:
        raise ValueError(
            f"{path.name} was written, and differs from the model by {difference:.1e} for one "
            f"image; {TOLERANCE:.0e} is allowed. {_OTHER}"
        )


def read_metadata(path: Path) -> dict[str, Any] | None:
    """The facts in a Keras file; None: it was not exported by this package."""
    with zipfile.ZipFile(path) as archive:
        if METADATA not in archive.namelist():
            return None
        facts: dict[str, Any] = json.loads(archive.read(METADATA))
        return facts


def package(model: LoadedModel, card: str, out: Path) -> None:
    """Write a model's folder.

    README.md is the card; config.json says classes, input and output; model.keras predicts without
    this package, and model.npz with it, or in further training; reference.png is a drawn chest (of
    a `Site` of somebody's own, reference.npy is noise), for which reference.json has the expected
    output, and check.py replays it. A calibration goes along.

    Args:
        model: Which model.
        card: Its model card, Markdown.
        out: New folder.

    Raises:
        FileExistsError: There is such a folder.
        ValueError: model.keras says something else than the model.
    """
    if out.exists():
        raise FileExistsError(f"a package needs a new folder; {out} exists. Give another --out.")
    with whole(out) as folder:
        folder.mkdir()
        (folder / "README.md").write_text(card, encoding="utf-8")
        export(model, "keras", folder / "model.keras")
        save(model.checkpoint, folder / "model.npz")
        facts = {"model_type": "keras", **metadata(model)}
        _write_json(folder / "config.json", facts)
        if model.calibration is not None:
            text = as_json(model.calibration)
            (folder / "model.calibration.json").write_text(text, encoding="utf-8")
        given, said = reference(model)
        if "black" in facts["input"]:
            image = "reference.png"
            Image.fromarray(given[0].astype(np.uint8)).save(folder / image)
        else:
            image = "reference.npy"
            np.save(folder / image, given[0])
        probabilities = dict(zip(model.classes, map(float, said[0]), strict=True))
        expected = {"image": image, "probabilities": probabilities, "tolerance": TOLERANCE}
        _write_json(folder / "reference.json", expected)
        program = resources.files(__package__).joinpath("check_package.py")
        (folder / "check.py").write_text(program.read_text(encoding="utf-8"), encoding="utf-8")


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _keras(network: keras.Model, path: Path, facts: str) -> None:
    network.save(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(METADATA, facts)


def _run_keras(path: Path, given: np.ndarray) -> np.ndarray:
    import keras

    return np.asarray(keras.saving.load_model(path, compile=False).predict_on_batch(given)[OUTPUT])


def _savedmodel(network: keras.Model, path: Path, facts: str) -> None:
    import tensorflow as tf
    from keras.export import ExportArchive

    archive = ExportArchive()
    archive.track(network)
    (given,) = network.inputs
    kinds = {"serving_default": tf.float32}
    kinds |= {"serve_uint8": tf.uint8} if given.name == "pixels" else {}
    for name, dtype in kinds.items():
        taken = tf.TensorSpec(given.shape, dtype, name=given.name)
        archive.add_endpoint(
            name, lambda given: network(tf.cast(given, tf.float32)), input_signature=[taken]
        )
    archive.write_out(path, verbose=False)
    (path / "assets.extra").mkdir()
    (path / "assets.extra" / METADATA).write_text(facts, encoding="utf-8")


def _run_savedmodel(path: Path, given: np.ndarray) -> np.ndarray:
    import tensorflow as tf

    loaded = tf.saved_model.load(path)  # lives as long as its signature is used
    serve = loaded.signatures["serving_default"]
    (name,) = serve.structured_input_signature[1]
    return np.asarray(serve(**{name: tf.constant(given)})[OUTPUT])


def _onnx(network: keras.Model, path: Path, facts: str) -> None:
    import onnx

    shape = [side or 1 for side in network.input_shape]
    network(np.zeros(shape, np.float32))  # Keras exports to ONNX what has been called
    network.export(path, format="onnx", verbose=False)
    made = onnx.load(path)
    onnx.helper.set_model_props(made, {METADATA: facts})
    onnx.save(made, path)


def _run_onnx(path: Path, given: np.ndarray) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (taken,) = session.get_inputs()
    return np.asarray(session.run([OUTPUT], {taken.name: given})[0])


_TARGETS: dict[Format, _Target] = {
    "keras": _Target(".keras", (), _keras, _run_keras),
    "savedmodel": _Target("", (), _savedmodel, _run_savedmodel),
    "onnx": _Target(".onnx", ("onnx", "onnxruntime", "tf2onnx"), _onnx, _run_onnx),
}

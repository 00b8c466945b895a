"""Export a model: a file that runs without this package, or a folder for a model hub."""

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

from cxr_study.common.files import atomic_path
from cxr_study.common.offered_data import demo_data
from cxr_study.data.images.decoding import resize_square
from cxr_study.models import OUTPUT, Format
from cxr_study.models.calibration_file import as_json
from cxr_study.models.loaded_model import LoadedModel
from cxr_study.training.network import SiteNetwork
from surgical_aggregation.checkpoints.checkpoint import digest, save
from surgical_aggregation.site.training.tensorflow_setup import quietly

if TYPE_CHECKING:
    import keras

METADATA = "surgical_aggregation.json"
"""Name of the metadata in an exported file; see `metadata`."""

CHECKPOINT = "model.npz"
"""Name of the checkpoint in a package."""

TOLERANCE = 1e-4
"""Largest difference of probabilities on other machines, whose processors sum in another order."""

_SIDE = 32  # pixels, of the test input for a network that accepts any size
_REMOVED = "It is removed; use another format, or the checkpoint."


class _Target(NamedTuple):
    suffix: str
    needs: tuple[str, ...]  # modules of the extra "export"
    write: Callable[[keras.Model, Path, str], None]  # network, new file, metadata as JSON
    run: Callable[[Path, np.ndarray], np.ndarray]  # from the file and its input to probabilities


def export(model: LoadedModel, to: Format, out: Path) -> None:
    """Write a model as a file that includes resizing and normalisation.

    - Input "pixels": grey images (n, height, width) of any height and width, float32, 0 black to
      255 white. Keras and SavedModel accept uint8 as well, the latter in the signature
      `serve_uint8`. The model of a custom `Site` has the input "images" instead: that of its
      network, float32.
    - Output `OUTPUT`: the model's own probabilities. A calibration is not applied; it is in the
      `metadata`.

    The file is run once on the input of `reference`, and removed if the result differs.

    Args:
        model: The model.
        to: "keras": one file for Keras 3; "savedmodel": a folder for TensorFlow, with the signature
            `serving_default`; "onnx": one file.
        out: New file or folder.

    Raises:
        ValueError: The name has the wrong suffix, a converter is not installed, or the file cannot
            be run or predicts other probabilities than the model.
        FileExistsError: `out` exists.
        CheckpointError: The model has no class.
        CalibrationError: The calibration next to the model is that of another model.

    Example:
        >>> export(load_model("best.npz"), "onnx", Path("chest.onnx"))  # doctest: +SKIP
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
    write_network(build_exported(model), to, out, facts, reference(model))


def reference(model: LoadedModel) -> tuple[np.ndarray, np.ndarray]:
    """Make a test input for an exported model: a drawn chest; noise for a custom `Site`'s network.

    Args:
        model: The model before export.

    Returns:
        The input, float32 (1, ...), and the model's probabilities for it, float32 (1, classes).
    """
    if isinstance(model.built_as, SiteNetwork):
        shape = [side or _SIDE for side in model.local.model.input_shape[1:]]
        noise = np.random.default_rng(0).normal(size=(1, *shape)).astype(np.float32)
        return noise, model.local.outputs(noise)[1]
    chest = demo_data().picture()
    small = np.asarray(resize_square(Image.fromarray(chest), model.network.image_size))
    probabilities = model.predictions(small[None]).probabilities.to_numpy()
    return chest[None].astype(np.float32), probabilities


def default_name(model: Path, to: Format) -> Path:
    """Default file name of an exported model, in the current folder.

    Example:
        >>> default_name(Path("runs/best.npz"), "onnx").name
        'best.onnx'
    """
    return Path(model.stem).with_suffix(_TARGETS[to].suffix)


def build_exported(model: LoadedModel) -> keras.Model:
    """Build the uncompiled network with the input of `export` and the output `OUTPUT`."""
    trained = model.local.model
    import keras

    network = keras.Model(trained.input, trained.output, name=trained.name)
    if not isinstance(model.built_as, SiteNetwork):
        from cxr_study.models.pixel_graph import with_pixel_input

        return with_pixel_input(network, model.network.normalisation)
    images = keras.Input(network.input_shape[1:], name="images")
    return keras.Model(images, {OUTPUT: network(images)}, name="images_to_probabilities")


def metadata(model: LoadedModel) -> dict[str, Any]:
    """Metadata of an exported file, in JSON types.

    Among its keys are "classes", in the order of the output; "input"; "trained_by", class -> sites;
    "network"; and "calibration", class -> the curve to apply to the output and the threshold of the
    calibrated probability, or None if the model is not calibrated.

    Raises:
        CalibrationError: The calibration next to the model is that of another model.
    """
    facts = model.facts
    curves = model.calibration and {
        name: of.model_dump(include={"curve", "threshold"})
        for name, of in model.calibration.classes.items()
    }
    takes = {"name": "pixels", "layout": "(images, height, width)", "black": 0, "white": 255}
    if isinstance(model.built_as, SiteNetwork):
        sides = ("any" if side is None else str(side) for side in model.local.model.input_shape[1:])
        takes = {"name": "images", "layout": f"({', '.join(['images', *sides])})"}
    return {
        "classes": list(model.classes),
        "input": takes,
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
    """Write a Keras model with metadata in one of the formats; see `export`.

    Args:
        network: With one input, and the output `OUTPUT`.
        to: Format.
        out: New file or folder, which appears only when it is complete and checked.
        facts: See `metadata`.
        example: An input and its expected probabilities, (1, classes), to check the file with.
            Default None: the file is not run.

    Raises:
        ValueError: The file cannot be run, or predicts other probabilities.
    """
    text = json.dumps(facts, indent=1) + "\n"
    with atomic_path(out) as partial, quietly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tf2onnx refers to types that NumPy 2 has removed
        _TARGETS[to].write(network, partial, text)
        if example is not None:
            _check_runs(to, partial, *example)


def _check_runs(to: Format, path: Path, given: np.ndarray, expected: np.ndarray) -> None:
    """Raise `ValueError` unless a file maps an input to its probabilities."""
    try:
        difference = float(np.abs(_TARGETS[to].run(path, given) - expected).max())
    except Exception as error:  # the runtimes raise different types
        reason = str(error).split("\n")[0].rstrip(".")
        raise ValueError(
            f"{path.name} was written, but does not run: {reason}. {_REMOVED}"
        ) from error
    if not difference <= TOLERANCE:
        raise ValueError(
            f"{path.name} was written, but differs from the model by {difference:.1e} for one "
            f"image; {TOLERANCE:.0e} is allowed. {_REMOVED}"
        )


def read_metadata(path: Path) -> dict[str, Any] | None:
    """Read the metadata of a Keras file; None: this package did not export it."""
    with zipfile.ZipFile(path) as archive:
        if METADATA not in archive.namelist():
            return None
        return json.loads(archive.read(METADATA))


def package(model: LoadedModel, card: str, out: Path) -> None:
    """Write a folder with a model and all that is needed to use it, as for a model hub.

    Its files:

    - README.md: the model card;
    - config.json: the `metadata`;
    - model.keras: for use without this package;
    - model.npz: the checkpoint, for use with this package and further training;
    - model.calibration.json: the calibration, if there is one;
    - reference.png, a drawn chest (for a custom `Site` reference.npy, noise), and reference.json,
      the probabilities expected for it;
    - check.py: compares the model with the reference.

    Args:
        model: The model.
        card: Its model card, Markdown.
        out: New folder.

    Raises:
        FileExistsError: `out` exists.
        ValueError: model.keras predicts other probabilities than the model.
    """
    if out.exists():
        raise FileExistsError(f"a package needs a new folder; {out} exists. Give another --out.")
    with atomic_path(out) as folder:
        folder.mkdir()
        (folder / "README.md").write_text(card, encoding="utf-8")
        export(model, "keras", folder / "model.keras")
        save(model.checkpoint, folder / CHECKPOINT)
        facts = {"model_type": "keras", **metadata(model)}
        _write_json(folder / "config.json", facts)
        if model.calibration is not None:
            text = as_json(model.calibration)
            (folder / "model.calibration.json").write_text(text, encoding="utf-8")
        given, predicted = reference(model)
        if "black" in facts["input"]:
            image = "reference.png"
            Image.fromarray(given[0].astype(np.uint8)).save(folder / image)
        else:
            image = "reference.npy"
            np.save(folder / image, given[0])
        probabilities = dict(zip(model.classes, map(float, predicted[0]), strict=True))
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

    loaded = tf.saved_model.load(path)  # must be referenced as long as its signature is used
    serve = loaded.signatures["serving_default"]
    (name,) = serve.structured_input_signature[1]
    return np.asarray(serve(**{name: tf.constant(given)})[OUTPUT])


def _onnx(network: keras.Model, path: Path, facts: str) -> None:
    import onnx

    shape = [side or 1 for side in network.input_shape]
    network(np.zeros(shape, np.float32))  # Keras exports only a model that has been called
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

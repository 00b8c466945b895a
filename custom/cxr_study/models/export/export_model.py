"""Write a model as a file that other programs run without this package."""

from __future__ import annotations

import importlib.util
import json
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image

from cxr_study.data.images.decoding import square
from cxr_study.models.export import Format
from cxr_study.models.export.reference_image import TOLERANCE, chest
from cxr_study.models.loaded_model import LoadedModel
from cxr_study.models.prediction.calibration_file import current_calibration
from cxr_study.training.backbones import IMAGENET, Normalisation
from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.site.training.tensorflow_setup import quietly

if TYPE_CHECKING:
    import keras

METADATA = "surgical_aggregation.json"
"""Name of the facts in a file; see `metadata`."""

OUTPUT = "probabilities"
"""Name of the output: float32 (images, classes), in the order of the facts' "classes"."""


_OTHER = "It is removed; take another format, or the checkpoint."


class ExportError(ValueError):
    """A model cannot be exported as asked."""


class _Target(NamedTuple):
    suffix: str
    needs: tuple[str, ...]  # modules, of the extra "export"
    write: Callable[[keras.Model, Path, str], None]
    run: Callable[[Path, np.ndarray], np.ndarray]  # pixels to probabilities


def export(model: LoadedModel, to: Format, out: Path) -> None:
    """Write a model with resizing and normalisation inside.

    Its input is called "pixels": grey images (n, height, width) of any height and width, float32, 0
    black to 255 white (Keras and SavedModel: uint8 as well, the latter by `serve_uint8`); its
    output `OUTPUT`. Probabilities are the model's own: a calibration is in the `metadata` alone.
    What was written is run once, on a drawn chest.

    Args:
        model: Which model.
        to: "keras": one file for Keras 3; "savedmodel": a folder for TensorFlow, its signature
            `serving_default`; "onnx": one file.
        out: New file or folder.

    Raises:
        ExportError: The name has the wrong suffix, a converter is missing, or the file does not
            run, or says something else than the model.
        CheckpointError: The model has no class.
        CalibrationError: The model's calibration is that of another model.
    """
    check(to, out)
    model.calibration  # noqa: B018 (refuses that of another model)
    small = np.asarray(square(Image.fromarray(chest()), model.network.image_size))
    expected = model.outputs(small[None]).probabilities
    write_network(pixel_model(model), to, out, metadata(model), expected)


def check(to: Format, out: Path) -> None:
    """Refuse what `export` could not write, before anything is built.

    Raises:
        ExportError: The name has the wrong suffix, or a converter is missing.
        FileExistsError: There is such a file.
    """
    target = _TARGETS[to]
    if target.suffix and out.suffix != target.suffix:
        raise ExportError(f"{to} needs a file {target.suffix}; got {out}.")
    if out.exists():
        raise FileExistsError(f"an exported model needs a new file; {out} exists. Give another.")
    if missing := [name for name in target.needs if importlib.util.find_spec(name) is None]:
        raise ExportError(
            f"{to} needs {' and '.join(missing)}, which is not installed: pip install "
            "'surgical-aggregation[export]'."
        )


def default_name(model: Path, to: Format) -> Path:
    """How an exported model is called, in the current folder."""
    return Path(model.stem).with_suffix(_TARGETS[to].suffix or "")


def pixel_model(model: LoadedModel) -> keras.Model:
    """The uncompiled network behind a pixel input; see `pixel_graph`."""
    trained = model.local.model
    import keras

    network = keras.Model(trained.input, trained.output, name=trained.name)
    return behind_pixels(network, model.network.normalisation)


def behind_pixels(network: keras.Model, how: Normalisation = IMAGENET) -> keras.Model:
    """Put an uncompiled network behind a pixel input; see `pixel_graph`."""
    import keras

    from cxr_study.models.export.pixel_graph import with_pixels

    pixels, probabilities = with_pixels(network, how)
    return keras.Model(pixels, {OUTPUT: probabilities}, name="pixels_to_probabilities")


def metadata(model: LoadedModel) -> dict[str, Any]:
    """What a file says of itself: the classes in the output's order, and the manifest's facts.

    "calibration" has, for each class that has one, the curve that its output is still to be put
    through, and the threshold of the result; None: the model has no calibration of its own.
    """
    facts = model.facts
    calibration = current_calibration(model.file, model.checkpoint)
    curves = calibration and {
        name: of.model_dump(include={"curve", "threshold"})
        for name, of in calibration.classes.items()
    }
    return {
        "classes": list(model.classes),
        "input": {"name": "pixels", "layout": "(images, height, width)", "black": 0, "white": 255},
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
    expected: np.ndarray | None = None,
) -> None:
    """Write a Keras model in a format, with facts inside; see `export`.

    Args:
        network: From pixels to probabilities.
        to: Format.
        out: New file or folder.
        facts: See `metadata`.
        expected: Probabilities of `reference_image.chest`, (1, classes). Default: it is not run.

    Raises:
        ExportError: It does not run, or says something else.
    """
    text = json.dumps(facts, indent=1) + "\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".") as folder:
        half = Path(folder, out.name)
        with quietly(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tf2onnx looks for types that NumPy 2 has no more
            _TARGETS[to].write(network, half, text)
            if expected is not None:
                _check_runs(to, half, expected)
        half.replace(out)


def _check_runs(to: Format, path: Path, expected: np.ndarray) -> None:
    try:
        said = _TARGETS[to].run(path, chest()[None].astype(np.float32))
        difference = float(np.abs(said - expected).max())
    except Exception as error:  # each runtime has its own
        reason = str(error).split("\n")[0].rstrip(".")
        raise ExportError(
            f"{path.name} was written, and does not run: {reason}. {_OTHER}"
        ) from error
    if not difference <= TOLERANCE:
        raise ExportError(
            f"{path.name} was written, and differs from the model by {difference:.1e} for a drawn "
            f"chest; {TOLERANCE:.0e} is allowed. {_OTHER}"
        )


def read_metadata(path: Path) -> dict[str, Any] | None:
    """The facts in a Keras file; None: it was not exported by this package."""
    with zipfile.ZipFile(path) as archive:
        if METADATA not in archive.namelist():
            return None
        facts: dict[str, Any] = json.loads(archive.read(METADATA))
        return facts


def _keras(network: keras.Model, path: Path, facts: str) -> None:
    network.save(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(METADATA, facts)


def _run_keras(path: Path, pixels: np.ndarray) -> np.ndarray:
    import keras

    return np.asarray(keras.saving.load_model(path, compile=False).predict_on_batch(pixels)[OUTPUT])


def _savedmodel(network: keras.Model, path: Path, facts: str) -> None:
    import tensorflow as tf
    from keras.export import ExportArchive

    archive = ExportArchive()
    archive.track(network)
    for name, dtype in (("serving_default", tf.float32), ("serve_uint8", tf.uint8)):
        pixels = tf.TensorSpec((None, None, None), dtype, name="pixels")
        archive.add_endpoint(
            name, lambda pixels: network(tf.cast(pixels, tf.float32)), input_signature=[pixels]
        )
    archive.write_out(path, verbose=False)
    (path / "assets.extra").mkdir()
    (path / "assets.extra" / METADATA).write_text(facts, encoding="utf-8")


def _run_savedmodel(path: Path, pixels: np.ndarray) -> np.ndarray:
    import tensorflow as tf

    serve = tf.saved_model.load(path).signatures["serving_default"]
    return np.asarray(serve(pixels=tf.constant(pixels))[OUTPUT])


def _onnx(network: keras.Model, path: Path, facts: str) -> None:
    import onnx

    network(np.zeros((1, 1, 1), np.float32))  # Keras exports to ONNX what has been called
    network.export(path, format="onnx", verbose=False)
    made = onnx.load(path)
    onnx.helper.set_model_props(made, {METADATA: facts})
    onnx.save(made, path)


def _run_onnx(path: Path, pixels: np.ndarray) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.asarray(session.run([OUTPUT], {"pixels": pixels})[0])


_TARGETS: dict[Format, _Target] = {
    "keras": _Target(".keras", (), _keras, _run_keras),
    "savedmodel": _Target("", (), _savedmodel, _run_savedmodel),
    "onnx": _Target(".onnx", ("onnx", "onnxruntime", "tf2onnx"), _onnx, _run_onnx),
}

"""A model in memory, as a program uses it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cxr_study.data.images.image_store import Images
from cxr_study.data.labels.label_table import assemble, certain
from cxr_study.evaluation.predictions import Predictions, predict, restore
from cxr_study.models.model_choice import choose
from cxr_study.models.prediction.calibration_file import Calibration, read_calibration
from cxr_study.training.network_facts import AnyNetwork, Network, SiteNetwork, network_of
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, load
from surgical_aggregation.checkpoints.model_facts import ModelFacts, facts_of
from surgical_aggregation.site.contract.site import Site, Split
from surgical_aggregation.site.training.tensorflow_setup import import_quietly

if TYPE_CHECKING:
    from cxr_study.models.prediction.found_images import FoundImage
    from cxr_study.models.prediction.image_reader import ReadImage
    from surgical_aggregation.site.training.keras_model import LocalModel

IMAGE, FLAGS = "image", "flags"

NEVER_LEARNED = "never learned"
"""Flag of every image, before the classes that no site could teach the model."""


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A trained model; see `load_model`.

    Attributes:
        file: Where it is.
        checkpoint: Its variables and manifest.
        built_as: The network that it is built as: one of ours, or that of a `Site`.
    """

    file: Path
    checkpoint: Checkpoint
    built_as: AnyNetwork

    @property
    def network(self) -> Network:
        """The network, whose images are grey squares as `decoding` makes them.

        Raises:
            ValueError: It is that of a `Site`, which makes its images itself.
        """
        if isinstance(self.built_as, SiteNetwork):
            raise ValueError(
                "images of a Site of your own are what its data() gives. Name its splits: train, "
                "validation, test."
            )
        return self.built_as

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of its outputs, in order."""
        return self.facts.classes

    @cached_property
    def facts(self) -> ModelFacts:
        """What its manifest says."""
        return facts_of(self.checkpoint)

    @property
    def never_learned(self) -> Mapping[str, str]:
        """Classes that no site could teach the model -> why."""
        return self.facts.never_learned

    @cached_property
    def local(self) -> LocalModel:
        """The network with the model's variables; starts TensorFlow.

        Raises:
            CheckpointError: The model has no class.
            SiteError: It does not fit its network.
        """
        import_quietly()
        return restore(self.checkpoint, self.built_as)

    @cached_property
    def calibration(self) -> Calibration | None:
        """What lies beside its file to calibrate it with; None: nothing.

        Raises:
            CalibrationError: It is that of another model.
        """
        return read_calibration(self.file, self.checkpoint)

    @property
    def features(self) -> Mapping[str, Mapping[str, Any]]:
        """Site -> where its images lie (see `feature_statistics`), as far as policies let it."""
        found: Mapping[str, Mapping[str, Any]] = self.checkpoint.manifest.get("features", {})
        return found

    def predict(
        self, images: Iterable[str | Path] | str | Path, *, calibrated: bool = True
    ) -> pd.DataFrame:
        """Predict images.

        Args:
            images: Image files, folders of them, or csv files that name them.
            calibrated: See `predict_chunks`. Default True.

        Returns:
            A row per image in their order, with columns "image", one per class, "<class> positive"
            where the class has a threshold, and "flags". Of an image that cannot be read the
            numbers are missing, and the flags say why.

        Raises:
            ValueError: There is no image.
        """
        from cxr_study.models.prediction.found_images import find

        found = find([images] if isinstance(images, str | Path) else images)
        tables = []
        for chunk, table in self.predict_chunks(found, calibrated=calibrated):
            bad = {at: one for at, one in chunk.items() if one.pixels is None}
            reasons = [f"cannot be read: {one.problem}" for one in bad.values()]
            names = [one.image for one in bad.values()]
            index = pd.Index(bad, dtype=np.int64)
            tables += [table, pd.DataFrame({IMAGE: names, FLAGS: reasons}, index, dtype=str)]
        return pd.concat(tables).sort_index()

    def predict_chunks(
        self, images: Sequence[FoundImage], *, calibrated: bool = True, bits: int | None = None
    ) -> Iterator[tuple[dict[int, ReadImage], pd.DataFrame]]:
        """Predict images in chunks, in their order.

        Args:
            images: Of any number; memory holds two chunks.
            calibrated: Whether probabilities are calibrated, and thresholds applied, as far as the
                model has a calibration. Default True.
            bits: See `image_reader.read`.

        Yields:
            Position among all -> image as it was read; and a row per image that can be read, with
            its position as index: its name; per class the probability, float32; per class with a
            threshold "<class> positive", 1 or 0; flags, by "; " (see `input_gate`), with the
            classes that the model never learned.

        Raises:
            CalibrationError: The model's calibration is that of another model.
            CheckpointError: The model has no class.
        """
        from cxr_study.models.prediction import image_reader

        if calibrated:
            self.calibration  # noqa: B018 (refuses that of another model)
        done = 0
        for chunk in image_reader.read(images, self.network.image_size, bits):
            yield dict(enumerate(chunk, done)), self._table(chunk, done, calibrated)
            done += len(chunk)

    def _table(self, chunk: Sequence[ReadImage], first: int, calibrated: bool) -> pd.DataFrame:
        from cxr_study.models.prediction import input_gate

        good = {at: one for at, one in enumerate(chunk, first) if one.pixels is not None}
        probabilities, far = np.zeros((0, len(self.classes)), np.float32), np.zeros(0, bool)
        if good:
            pixels = [np.asarray(one.pixels) for one in good.values()]
            found = self.predictions(np.stack(pixels))
            probabilities = found.probabilities.to_numpy()
            far = input_gate.far_away(found.features, self.features)
        flags = [
            [*one.flags, *[input_gate.FAR] * away]
            for one, away in zip(good.values(), far.tolist(), strict=True)
        ]
        names = [one.image for one in good.values()]
        return self._named(names, probabilities, flags, list(good), calibrated)

    def predict_own(self, split: Split, *, calibrated: bool = True) -> pd.DataFrame:
        """Predict a split of the `Site` that the model was loaded with; see `predict_chunks`.

        Images are named by their number: "test 0", "test 1", ...
        """
        if not isinstance(self.built_as, SiteNetwork):
            raise ValueError("splits are predicted of a Site of your own alone; give its class.")
        found = self.predict_site(self.built_as.site, "", split)
        names = found.images.table[IMAGE].tolist()
        flags: list[list[str]] = [[] for _ in names]
        at = list(range(len(names)))
        return self._named(names, found.probabilities.to_numpy(), flags, at, calibrated)

    def _named(
        self,
        names: Sequence[str],
        probabilities: np.ndarray,
        flags: Sequence[list[str]],
        at: Sequence[int],
        calibrated: bool,
    ) -> pd.DataFrame:
        """The table of `predict_chunks`."""
        index = pd.Index(at, dtype=np.int64)
        table = pd.DataFrame(probabilities, index, list(self.classes))
        if calibrated and self.calibration is not None:
            table = self.calibration.calibrated(table)
            table = table.join(self.calibration.positive(table))
        table.insert(0, IMAGE, pd.Series(names, index, dtype=str))
        never = ", ".join(self.never_learned)
        texts = ["; ".join([*each, *[f"{NEVER_LEARNED}: {never}"] * bool(never)]) for each in flags]
        return table.assign(**{FLAGS: pd.Series(texts, index, dtype=str)})

    def predictions(self, images: Images | np.ndarray) -> Predictions:
        """Predict decoded images, or uint8 (n, image_size, image_size) as `decoding` makes them."""
        if not isinstance(images, Images):
            rows = np.arange(len(images))
            images = Images(pd.DataFrame(index=rows), images, rows)
        return predict(self.local, images, self.network)

    def predict_site(self, site: Site, name: str, split: Split) -> Predictions:
        """Predict a split of a `Site`, whose every image counts as a patient."""
        found = self.local.predict(site.data(split))
        labels = dict(zip(site.classes, found.labels.T, strict=True))
        at = [f"{split} {number}" for number in range(len(found.labels))]
        table = assemble(labels, image=np.array(at), patient=np.array(at), view="")
        table[list(labels)] = certain(table[list(labels)])
        none = np.zeros((len(at), 0, 0), np.uint8)  # they are not kept
        images = Images(table, none, np.arange(len(at)), name, frozenset(labels))
        probabilities = pd.DataFrame(found.probabilities, columns=list(self.classes))
        return Predictions(images, probabilities, found.features)


def load_model(
    path: str | Path, site: str | None = None, own_site: Site | None = None
) -> LoadedModel:
    """Load a model to predict with.

    Args:
        path: A checkpoint such as best.npz, or the folder of a run or of a downloaded job.
        site: In a run whose sites have personal models (fedbn, personalised): whose.
        own_site: One of the sites that trained it, where they are a `Site` of your own, whose
            network it is. Default: sites of this application.

    Raises:
        ValueError: There is no such model.
        CheckpointError: The file cannot be read, or does not say which network it is.

    Example:
        >>> from cxr_study import load_model
        >>> model = load_model("best.npz")  # doctest: +SKIP
        >>> model.predict(["a.png", "b.dcm"])  # doctest: +SKIP
    """
    file, of_job = choose(Path(path), site, own_site is not None)
    checkpoint = load(file)
    if own_site is not None:
        return LoadedModel(file, checkpoint, SiteNetwork(own_site))
    try:
        network = network_of(checkpoint)
    except CheckpointError as error:
        if of_job is None:
            raise CheckpointError(f"{file}: {error}") from None
        network = of_job
    return LoadedModel(file, checkpoint, network)

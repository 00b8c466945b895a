"""A model in memory, for use by a program; and how it is found from a file, folder or run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.data.images.image_store import Images
from cxr_study.data.labels.label_table import assemble
from cxr_study.data.labels.uncertain_labels import certain
from cxr_study.data.sites.site_data import load_images, load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.data.sites.split_file import read_split, replaced_files
from cxr_study.evaluation.predictions import Predictions, predict, restore
from cxr_study.evaluation.test_split import to_test
from cxr_study.models import images_to_predict
from cxr_study.models.calibration_file import CalibrationFile, read_calibration
from cxr_study.models.images_to_predict import FAR, FoundImage, ReadImage
from cxr_study.runs.finished_run import FinishedRun, RunFolderError, run_of
from cxr_study.runs.job_results import best_checkpoint, personal_checkpoints
from cxr_study.training.network import AnyNetwork, Network, SiteNetwork, network_of
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, load
from surgical_aggregation.checkpoints.model_facts import ModelFacts, facts_of
from surgical_aggregation.server.models.model_files import BEST_FILE
from surgical_aggregation.site.contract.site import Site, Split
from surgical_aggregation.site.training.tensorflow_setup import import_quietly

if TYPE_CHECKING:
    from surgical_aggregation.site.training.local_model import LocalModel

__all__ = ["LoadedModel", "load_model"]

IMAGE, FLAGS = "image", "flags"
"""First and last column of a table of predictions."""

NEVER_LEARNED = "never learned"
"""Flag of every image, followed by the classes for which no site had training labels."""


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A trained model; made by `load_model`.

    The network is built, and TensorFlow started, at the first prediction.

    Attributes:
        file: The model's file.
        checkpoint: Its variables and manifest.
        built_as: The network to build: one of this package, or that of a custom `Site`.
    """

    file: Path
    checkpoint: Checkpoint
    built_as: AnyNetwork

    @property
    def network(self) -> Network:
        """The network, if it is one of this package, for grey square images.

        Raises:
            ValueError: It is that of a custom `Site`, which makes its images itself.
        """
        if isinstance(self.built_as, SiteNetwork):
            raise ValueError(
                "images of a Site of your own are what its data() gives. Name its splits: train, "
                "validation, test."
            )
        return self.built_as

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the model's outputs, in order."""
        return self.facts.classes

    @cached_property
    def facts(self) -> ModelFacts:
        """The content of the model's manifest: classes, who trained them, AUROCs, provenance."""
        return facts_of(self.checkpoint)

    @cached_property
    def local(self) -> LocalModel:
        """The network with the model's variables; starts TensorFlow.

        Raises:
            CheckpointError: The model has no class.
            SiteError: The model does not fit the network.
        """
        import_quietly()
        return restore(self.checkpoint, self.built_as)

    @cached_property
    def calibration(self) -> CalibrationFile | None:
        """The calibration next to the model's file; None: there is none.

        Raises:
            CalibrationError: It is damaged, or that of another model.
        """
        return read_calibration(self.file, self.checkpoint)

    def predict(
        self, images: Iterable[str | Path] | str | Path, *, calibrated: bool = True
    ) -> pd.DataFrame:
        """Predict images.

        Args:
            images: Image files, folders of them, or csv files that name them; see
                `images_to_predict.find`.
            calibrated: Whether the model's calibration is applied, see `predict_chunks`. Default
                True.

        Returns:
            A row per image, in order. Columns: "image"; per class the probability; "<class>
            positive", 1 or 0, for each class with a threshold; "flags". For an image that cannot be
            read the numbers are missing, and the flags give the reason.

        Raises:
            ValueError: There is no image.
            CalibrationError: The calibration is that of another model.
            CheckpointError: The model has no class.

        Example:
            >>> load_model("best.npz").predict("images")["Edema"]  # doctest: +SKIP
        """
        found = images_to_predict.find([images] if isinstance(images, str | Path) else images)
        tables = []
        for chunk, table in self.predict_chunks(found, calibrated=calibrated):
            unread = {at: one for at, one in chunk.items() if one.pixels is None}
            rows = [(one.image, f"cannot be read: {one.problem}") for one in unread.values()]
            index = pd.Index(unread, dtype=np.int64)
            tables += [table, pd.DataFrame(rows, index, [IMAGE, FLAGS], dtype=str)]
        return pd.concat(tables).sort_index()

    def predict_chunks(
        self, images: Sequence[FoundImage], *, calibrated: bool = True, bits: int | None = None
    ) -> Iterator[tuple[dict[int, ReadImage], pd.DataFrame]]:
        """Predict images in chunks, in order.

        Args:
            images: Any number; memory holds two chunks.
            calibrated: Whether probabilities are calibrated and thresholds applied, for the classes
                with a calibration. Default True.
            bits: See `images_to_predict.read`. Default None.

        Yields:
            Two items per chunk. The first is a dictionary: position among all images -> decoded
            image. The second is a table of the readable images, indexed by position: name;
            probability per class, float32; "<class> positive" per class with a threshold, int8;
            flags, separated by "; " (see `images_to_predict`), including classes that the model
            never learned.

        Raises:
            CalibrationError: The calibration is that of another model.
            CheckpointError: The model has no class.
        """
        if calibrated:
            self.calibration  # noqa: B018 (raises before any image is read)
        done = 0
        for chunk in images_to_predict.read(images, self.network.image_size, bits):
            yield dict(enumerate(chunk, done)), self._table(chunk, done, calibrated)
            done += len(chunk)

    def _table(self, chunk: Sequence[ReadImage], first: int, calibrated: bool) -> pd.DataFrame:
        """Predict the readable images of a chunk whose first image has the position `first`."""
        good = {at: one for at, one in enumerate(chunk, first) if one.pixels is not None}
        size = self.network.image_size
        pixels = np.array([one.pixels for one in good.values()], np.uint8).reshape(-1, size, size)
        found = self.predictions(pixels)
        sites = self.checkpoint.manifest.get("features", {})  # of sites whose policy permits it
        far = images_to_predict.far_from_training(found.features, sites).tolist()
        names = [one.image for one in good.values()]
        flags = [
            [*one.flags, *[FAR] * is_far] for one, is_far in zip(good.values(), far, strict=True)
        ]
        return self._named(found.probabilities, list(good), names, flags, calibrated)

    def predict_own(self, split: Split, *, calibrated: bool = True) -> pd.DataFrame:
        """Predict a split of the custom `Site` that the model was loaded with.

        Args:
            split: "train", "validation" or "test".
            calibrated: See `predict_chunks`. Default True.

        Returns:
            The table of `predict_chunks`. Images are named by number: "test 0", "test 1", ...

        Raises:
            ValueError: The model was loaded without a custom `Site`.
            CalibrationError: The calibration is that of another model.
        """
        if not isinstance(self.built_as, SiteNetwork):
            raise ValueError("only splits of a Site of your own are predicted; give its class.")
        found = self.predict_site(self.built_as.site, "", split)
        names, index = found.images.table[IMAGE].tolist(), list(found.images.table.index)
        return self._named(found.probabilities, index, names, [[]] * len(names), calibrated)

    def _named(
        self,
        probabilities: pd.DataFrame,
        at: list[int],
        names: list[str],
        flags: list[list[str]],
        calibrated: bool,
    ) -> pd.DataFrame:
        """Make the table of `predict_chunks`; `at` are the positions of the images."""
        index = pd.Index(at, dtype=np.int64)
        table: pd.DataFrame = probabilities.set_axis(index)
        if calibrated and self.calibration is not None:
            table = self.calibration.applied(table)
        table.insert(0, IMAGE, pd.Series(names, index, dtype=str))
        never = ", ".join(self.facts.never_learned)
        texts = ["; ".join([*each, *[f"{NEVER_LEARNED}: {never}"] * bool(never)]) for each in flags]
        table[FLAGS] = pd.Series(texts, index, dtype=str)
        return table

    def predictions(self, images: Images | np.ndarray) -> Predictions:
        """Predict decoded images, without calibration.

        Args:
            images: Images of a site; or an array as `decoding` makes it, uint8 (n, image_size,
                image_size).
        """
        if not isinstance(images, Images):
            rows = np.arange(len(images))
            images = Images(pd.DataFrame(index=rows), images, rows)
        return predict(self.local, images, self.network)

    def predict_site(
        self, source: Path | Site, name: str, split: Split, *, needed: bool = True
    ) -> Predictions:
        """Predict a split of a site's images, without calibration.

        Args:
            source: The site file; or a custom `Site`, for which every image counts as one patient.
            name: Name of the custom site.
            split: "train", "validation" or "test".
            needed: Whether an empty split is an error. Default True. If not, the tables are empty.

        Returns:
            The predictions, and the images' labels: 1, 0 or NaN (not known, uncertain).

        Raises:
            ValueError: The site file or a file that it names is not usable.
        """
        if isinstance(source, Path):
            of_site = load_images(load_labels(read_site_file(source)), self.network.image_size)
            images = of_site.of(split)
            if needed and images.table.empty:
                raise InputError(f"{source}: the {split} split needs images; there is none.")
            return self.predictions(to_test(images, sorted(images.labelled)))
        found = self.local.predict(source.data(split))
        labels = dict(zip(source.classes, found.labels.T, strict=True))
        at = [f"{split} {number}" for number in range(len(found.labels))]
        table = assemble(labels, image=np.array(at), patient=np.array(at), view="")
        table[list(labels)] = certain(table[list(labels)])
        no_pixels = np.zeros((len(at), 0, 0), np.uint8)  # a Site yields them only in batches
        images = Images(table, no_pixels, np.arange(len(at)), name, frozenset(labels))
        probabilities = pd.DataFrame(found.probabilities, columns=list(self.classes))
        return Predictions(images, probabilities, found.features)


def load_model(
    path: str | Path, site: str | None = None, own_site: Site | None = None
) -> LoadedModel:
    """Load a model for prediction.

    Args:
        path: A checkpoint such as best.npz, or the folder of a run or of a downloaded job.
        site: Name of the site whose personal model is loaded, in a run with personal models (fedbn,
            personalised). Default None: the global model.
        own_site: One of the sites that trained the model, if they are a custom `Site`, whose
            network it is. Default None: the sites are of this package.

    Raises:
        ValueError: There is no such model.
        CheckpointError: The file cannot be read, or its manifest does not name a known network.

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


def choose(
    path: Path, site: str | None = None, own_site: bool = True
) -> tuple[Path, Network | None]:
    """Find the file of a model.

    Args:
        path: A checkpoint; the folder of a run or of a downloaded job, whose best model is chosen;
            or any folder with a best.npz.
        site: Name of the site whose personal model is chosen. Default None: the global model.
        own_site: Whether a job whose sites are a custom `Site` is accepted. Default True.

    Returns:
        The file; and the network from the settings of the run's job, or None if there is no job, or
        its sites are a custom `Site`.

    Raises:
        ValueError: There is no such model, or it is ambiguous or encrypted.
        ResultsError: The run has not finished.
    """
    if path.is_file():
        if site is not None:
            raise ValueError(
                f"a site's model is found in the folder of a run; {path} is a file. Give the "
                "folder, or that site's site_best.npz without --site."
            )
        return path, None
    if not path.is_dir():
        raise ValueError(f"a model is needed: a run's folder, or a checkpoint; {path} is neither.")
    try:
        run = run_of(path)
    except RunFolderError:
        file = path / BEST_FILE
        if site is not None or not file.is_file():
            raise ValueError(
                f"the folder of a run, or one with a {BEST_FILE}, is needed; {path} is neither."
            ) from None
        return file, None
    model = _model_of(run, site)
    if not run.job.has_own_site:
        settings = run.job.at_server
        return model, Network(settings.backbone, settings.image_size, settings.hidden)
    if own_site:
        return model, None
    raise ValueError(
        f"the sites of job {run.job.name!r} have a network of their own. Name their class: "
        "--own-site my.module:MySite --arg site={SITE_NAME} --arg folder=data"
    )


def _model_of(run: FinishedRun, site: str | None) -> Path:
    """File of a run's best global model (None), or of a site's personal model."""
    personal = personal_checkpoints(run.states)
    if site is not None:
        if site in personal:
            return personal[site]
        sites = ", ".join(sorted(personal)) or "none"
        raise ValueError(
            f"{site} has no personal model in this run; sites that have one: {sites}. Without "
            "--site the global model is meant."
        )
    if personal:
        raise ValueError(
            "every site has a personal model in this run; say whose with --site: "
            f"{', '.join(sorted(personal))}."
        )
    if run.job.encrypted:
        raise ValueError(
            "this run's models are encrypted. Open one at a site first: surgagg model decrypt "
            f"{best_checkpoint(run.servers[-1])} --context client_context.tenseal --out plain.npz"
        )
    return best_checkpoint(run.servers[-1])


def seen_in_training(
    model: LoadedModel, folder: Path, sites: Iterable[str], splits: Iterable[str]
) -> list[str]:
    """Warn of evaluation images whose patients may have been in a model's training.

    A model does not record its patients. So the training patients of each earlier split file of a
    site, which the present one has replaced, are compared with the present split. Without an
    earlier file, a split file is reported that is newer than the model.

    Args:
        model: The model to be evaluated.
        folder: Folder of <site>.yaml.
        sites: Names of the sites; those that did not train the model are skipped.
        splits: The splits to be evaluated.

    Returns:
        One sentence per finding.
    """
    trained = {site for of in model.facts.trained.values() for site in of.sites}
    made = model.file.stat().st_mtime
    notes = []
    for site in filter(trained.__contains__, sites):
        read = read_site_file(folder / f"{site}.yaml")
        old = replaced_files(read.split)
        table = load_labels(read).table if old else pd.DataFrame()
        for file, split in itertools.product(old, splits):
            now = table[table["split"] == split]
            before = read_split(file).assignment.query("split == 'train'")
            if seen := int(now["patient"].isin(before["patient"]).sum()):
                notes.append(
                    f"{site}: {seen} of {len(now)} {split} images are of patients that {file.name} "
                    "trained with. If that was the split of the training, the model has seen them, "
                    "and its results are too good."
                )
        if not old and read.split.is_file() and read.split.stat().st_mtime > made:
            notes.append(
                f"{site}: {read.split} is newer than the model, which {site} trained. If it is not "
                "the split of the training, the model has seen some of these patients, and its "
                "results are too good."
            )
    return notes

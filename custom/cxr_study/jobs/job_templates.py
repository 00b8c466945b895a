"""The job folders: one template for every method of the papers, one for an evaluation."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING

from cxr_study.common.spelling import nearest
from cxr_study.jobs import code_shipping, job_folder, presets
from cxr_study.jobs.job_folder import CLIENT_CONFIG, SERVER_CONFIG
from cxr_study.jobs.job_settings import JobError, Settings
from surgical_aggregation.aggregation.strategy import check

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True)
class Method:
    """A way to train together.

    Attributes:
        name: Of the job.
        title: What it is called in headings.
        head: What becomes of the head; a sentence.
        strategy: Its own strategy for the body; see `surgical_aggregation.aggregation.strategy`.
        personal_head: Whether the head stays at the site.
        other_classes: What a site takes the classes that it does not label as; see
            `site.ChestXraySite`.
        encrypted: Whether what the sites send is homomorphically encrypted.
    """

    name: str
    title: str
    head: str
    strategy: str = "fedbn+"
    personal_head: bool = False
    other_classes: str = "omit"
    encrypted: bool = False

    @property
    def union_head(self) -> bool:
        """Whether every site predicts the classes of all."""
        return self.other_classes != "omit"

    @property
    def own_columns(self) -> bool:
        """Whether the sites share the columns of a head, each those of its own classes."""
        return not (self.personal_head or self.union_head)


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in (
            Method(
                "surgical",
                "Surgical aggregation",
                "A class's column is averaged over the sites that label it; a site gets its own.",
            ),
            Method(
                "personalised",
                "Personalised federated learning",
                "The body is averaged; every site keeps its own head.",
                personal_head=True,
            ),
            Method(
                "vanilla",
                "Vanilla federated learning",
                "Every site predicts the union; classes that it does not label count as absent.",
                strategy="fedavg",
                other_classes="absent",
            ),
            Method(
                "partial_loss",
                "Federated learning with partial loss",
                "Every site predicts the union; classes that it does not label do not count.",
                other_classes="unknown",
            ),
            Method(
                "surgical_he",
                "Surgical aggregation under homomorphic encryption",
                "As surgical; the server adds and divides what it cannot read.",
                encrypted=True,
            ),
        )
    }
)
"""Name -> method."""

EVALUATION = "evaluation"
"""Name of the job that measures a model and trains none."""

JOBS = (*METHODS, EVALUATION)


def write(name: str, folder: Path, code: str = "marked") -> None:
    """Write a job's folder, for the two sites of the phantom study.

    Args:
        name: Of the method, or `EVALUATION`.
        folder: New folder.
        code: How its code gets to the places that run it, one of `code_shipping.WAYS`.

    Raises:
        JobError: There is no such job or way.
        FileExistsError: The folder exists.
    """
    if name not in JOBS:
        raise JobError(f"there is no method {name!r}; {nearest(name, JOBS)}.")
    prefix = "" if name in METHODS else f"{name}_"
    if code not in code_shipping.WAYS:
        raise JobError(f"code must be one of {', '.join(code_shipping.WAYS)}; got {code!r}.")
    folder.mkdir(parents=True)
    for template, path in {
        "meta.json.j2": "meta.json",
        f"{prefix}server.conf.j2": SERVER_CONFIG,
        f"{prefix}client.conf.j2": CLIENT_CONFIG,
    }.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        carried = code_shipping.PACKAGES if code == "carried" else ()
        text = (
            _environment()
            .get_template(template)
            .render(name=name, method=METHODS.get(name), carried=carried)
        )
        file.write_text(text, "utf-8")
    for app in (job_folder.SERVER_APP, job_folder.CLIENT_APP):
        code_shipping.add(folder / app, code)


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("cxr_study.jobs", "templates"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        autoescape=False,  # HOCON, not HTML
    )


def configure(
    name: str,
    folder: Path,
    *,
    sites: Sequence[str],
    strategy: str | None = None,
    preset: str | None = None,
    settings: Settings,
    per_site: Mapping[str, Settings],
    code: str = "marked",
) -> None:
    """Write a job's folder for some sites, with some knobs set.

    Args:
        name: Of the method, or `EVALUATION`.
        folder: New folder.
        sites: Names of the sites.
        strategy: See `surgical_aggregation.aggregation.strategy`; None: the method's own.
        preset: See `presets`; None: the knobs for the phantom study on CPUs.
        settings: Knob -> value.
        per_site: Site -> knob -> value.
        code: See `write`.

    Raises:
        JobError: No such job, preset, knob, site or way, or a value of another kind.
        StrategyError: No such strategy.
    """
    if strategy is not None:
        settings = {**settings, "strategy": strategy}
    settings, per_site = presets.apply(preset, settings, per_site, sites)
    if name in METHODS:
        check(str(settings.get("strategy", METHODS[name].strategy)))
    with TemporaryDirectory() as temporary:
        template = Path(temporary) / name
        write(name, template, code)
        job_folder.check(template, sites=sites, settings=settings, per_site=per_site)
        job_folder.copy(template, folder, sites=sites, settings=settings, per_site=per_site)


def write_all(folder: Path) -> None:
    """Write every job's folder into `folder`, in place of what is there by that name."""
    for name in JOBS:
        shutil.rmtree(folder / name, ignore_errors=True)
        write(name, folder / name)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))

"""The job folders: one template for every method of the papers."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from jinja2 import Environment, PackageLoader, StrictUndefined

from cxr_study import job_folder, presets
from cxr_study.job_folder import CLIENT_CONFIG, SERVER_CONFIG, JobError, Settings
from cxr_study.vocabulary import nearest
from surgical_aggregation.strategy import check

TEMPLATES = Path(__file__).parent / "job_templates"
MARKER = TEMPLATES / "README.txt"
"""A job with a file in each app's custom/ may name classes of installed packages."""


@dataclass(frozen=True)
class Method:
    """A way to train together.

    Attributes:
        name: Of the job.
        title: What it is called in headings.
        head: What becomes of the head; a sentence.
        strategy: Its own strategy for the body; see `surgical_aggregation.strategy`.
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


def method_of(name: str) -> Method:
    """The method of a name.

    Raises:
        JobError: There is none.
    """
    if name not in METHODS:
        raise JobError(f"there is no method {name!r}; {nearest(name, tuple(METHODS))}.")
    return METHODS[name]


def write(name: str, folder: Path) -> None:
    """Write the job folder of a method, for the two sites of the phantom study.

    Args:
        name: Of the method.
        folder: New folder.

    Raises:
        JobError: There is no such method.
        FileExistsError: The folder exists.
    """
    method = method_of(name)
    folder.mkdir(parents=True)
    for template, path in {
        "meta.json.j2": "meta.json",
        "server.conf.j2": SERVER_CONFIG,
        "client.conf.j2": CLIENT_CONFIG,
    }.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_environment().get_template(template).render(method=method), "utf-8")
    for app in ("app_server", "app_client"):
        (folder / app / "custom").mkdir()
        shutil.copyfile(MARKER, folder / app / "custom" / MARKER.name)


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("cxr_study", "job_templates"),
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
) -> None:
    """Write a method's job folder for some sites, with some knobs set.

    Args:
        name: Of the method.
        folder: New folder.
        sites: Names of the sites.
        strategy: See `surgical_aggregation.strategy`; None: the method's own.
        preset: See `presets`; None: the knobs for the phantom study on CPUs.
        settings: Knob -> value.
        per_site: Site -> knob -> value.

    Raises:
        JobError: No such method, preset, knob or site, or a value of another kind.
        StrategyError: No such strategy.
    """
    if strategy is not None:
        settings = {**settings, "strategy": strategy}
    settings, per_site = presets.apply(preset, settings, per_site, sites)
    check(str(settings.get("strategy", method_of(name).strategy)))
    with TemporaryDirectory() as temporary:
        template = Path(temporary) / name
        write(name, template)
        needed = {**job_folder.knobs(template), **settings}["min_clients"]
        if isinstance(needed, int) and needed > len(sites):
            raise JobError(
                f"a round of this job needs the results of {needed} sites; got "
                f"{', '.join(sites)}. Add sites, or set min_clients={len(sites)}."
            )
        job_folder.copy(template, folder, sites=sites, settings=settings, per_site=per_site)


def write_all(folder: Path) -> None:
    """Write every method's job folder into `folder`, in place of what is there by that name."""
    for name in METHODS:
        shutil.rmtree(folder / name, ignore_errors=True)
        write(name, folder / name)


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))

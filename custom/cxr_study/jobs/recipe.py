"""FLARE's recipe of a method, for SimEnv, PocEnv and ProdEnv.

To import this module is to import FLARE's recipes, which take `--export` and `--export-dir` out of
the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from nvflare.recipe.spec import ExecEnv, Recipe

from cxr_study.jobs import job_templates
from cxr_study.jobs.command_line_settings import JobError, Settings
from cxr_study.jobs.fed_job import Configuration, StudyJob, read
from surgical_aggregation.site.contract.site import Site


class SurgicalAggregationRecipe(Recipe):
    """A method of the papers as a FLARE job: exactly that of its folder in jobs/.

    Server and sites get different apps, and a site with settings of its own an app of its own. Data
    and initial body are not part of the job: see `site_files` and `initial_body`.

    Args:
        sites: Names of the sites. Default: those of the phantom.
        name: Of the job. Default None: the method's.
        method: One of `job_templates.JOBS`. Default "surgical".
        strategy: "fedavg", "fedbn" or "fedbn+"; default None: the method's own.
        preset: See `presets`. Default None: the settings of the folder, for the phantom on CPUs.
        num_rounds: Rounds of this job. Default None: the preset's, else the folder's.
        min_clients: Results that a round needs. Default None: the folder's, 2.
        site_files: Folder of <site>.yaml at every site. Default None: the variable CXR_SITES there,
            else the phantom.
        initial_body: Checkpoint at the server. Default None: the variable CXR_INITIAL_BODY there,
            else the phantom's.
        code: "marked" (default) where there is no allow-list, as in SimEnv and PocEnv; "installed"
            for sites whose kits allow the packages; see `code_shipping`.
        site: Component that brings classes, network and data in place of the chest X-ray site,
            whose settings are then of no use. Default None: that one.
        per_site_config: Site -> setting -> value; as `set_per_site_config` right afterwards.
        settings: Any other setting of the folder, such as learning_rate=1e-4; see jobs/README.md.

    Raises:
        JobError: No such method, preset, setting or site, or a value of the wrong type.
        StrategyError: No such strategy.

    Example:
        >>> recipe = SurgicalAggregationRecipe(num_rounds=2, learning_rate=1e-3)
        >>> recipe.export("exported")
    """

    def __init__(
        self,
        *,
        sites: Sequence[str] = ("nih", "chexpert"),
        name: str | None = None,
        method: str = "surgical",
        strategy: str | None = None,
        preset: str | None = None,
        num_rounds: int | None = None,
        min_clients: int | None = None,
        site_files: str | None = None,
        initial_body: str | None = None,
        code: str = "marked",
        site: Site | None = None,
        per_site_config: dict[str, dict] | None = None,
        **settings: str | int | float | bool,
    ):
        if isinstance(sites, str):
            raise JobError(
                f"sites needs the names of the sites, e.g. ['nih', 'chexpert']; got {sites!r}. The "
                "folder of their site files is called site_files here."
            )
        named: dict[str, object] = {
            "num_rounds": num_rounds,
            "min_clients": min_clients,
            "sites": site_files,
            "initial_body": initial_body,
        }
        self.sites = tuple(sites)
        self.method = method
        self.strategy = strategy
        self.preset = preset
        self.code = code
        self.site = site
        self.settings = {k: v for k, v in named.items() if v is not None} | settings
        self._configuration = self._render({})
        super().__init__(StudyJob(name or method, self._configuration))
        if per_site_config:
            self.set_per_site_config(per_site_config)

    def process_env(self, env: ExecEnv) -> None:
        """Refuse an environment that names its sites, and not all of the job's."""
        names = getattr(env, "clients", self.sites) or ()
        if missing := [site for site in self.sites if site not in names]:
            raise JobError(
                f"the environment needs the job's sites; it is not told of {', '.join(missing)}. "
                f"Give it clients={list(self.sites)}."
            )

    def _apply_per_site_config(self, config: dict[str, dict]) -> None:
        self._configuration = self._render(config)

    def _prepare_client_apps(self) -> None:
        self._job.add_sites(self._configuration, self.site)

    def _render(self, per_site: Mapping[str, Settings]) -> Configuration:
        with TemporaryDirectory() as folder:
            job_templates.configure(
                self.method,
                Path(folder) / "job",
                sites=self.sites,
                strategy=self.strategy,
                preset=self.preset,
                settings=self.settings,
                per_site=per_site,
                code=self.code,
            )
            return read(Path(folder) / "job")

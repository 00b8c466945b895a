"""Where a site's files are: hospitals name a folder; without any policy the phantom will do."""

from pathlib import Path

from cxr_study.phantom import PHANTOM
from cxr_study.phantom.demo_data import demo_study
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.contract.site_policy import NO_POLICY, SitePolicy


def site_folder(given: str | None, policy: SitePolicy) -> Path:
    """Folder of site files: that of the job, else of the site's policy, else the demo study's.

    A site with a policy is a hospital's: it trains on the phantom only where it is told to.

    Raises:
        SiteError: The site has a policy, and neither it nor the job names a folder.
    """
    folder = given or policy.site_files
    if folder is None and policy is not NO_POLICY:
        raise SiteError(
            "a site with a policy needs the folder of its site files; none is named. Give "
            "'site_files' in its local/privacy.json, or the variable CXR_SITES where the client "
            f"starts; {PHANTOM!r} in place of a folder is the phantom."
        )
    return demo_study() if folder in (None, PHANTOM) else Path(folder)

"""Where a site's file is: at a hospital its policy says, else the job; unnamed, the phantom's."""

import os
from pathlib import Path

from cxr_study.common import offered_data
from cxr_study.common.offered_data import PHANTOM
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.contract.site_policy import NO_POLICY, SitePolicy

VARIABLE = "CXR_SITES"
"""With the folder, where the client starts: the site's own word, as its policy is."""


def site_file(site: str, given: str | None, policy: SitePolicy) -> Path:
    """Path of <folder>/<site>.yaml, which exists.

    A site with a policy is a hospital's. Its policy names the folder, else `VARIABLE` does; a job
    cannot, and it trains on the phantom only where it says so itself.

    Args:
        site: Its name.
        given: Folder or demo data that the job names, or `VARIABLE` in the job's place.
        policy: The site's.

    Raises:
        SiteError: The job names a folder and may not, nobody does, or there is no such file.
    """
    if policy is not NO_POLICY:
        own = policy.site_files or os.environ.get(VARIABLE)
        if given not in (None, "", own, os.environ.get(VARIABLE)):
            raise SiteError(
                f"this site says itself where its site files are; the job names {given!r}. Leave "
                f"the job's setting 'sites' as it is by default, {{${VARIABLE}}}."
            )
        if not own:
            raise SiteError(
                "a site with a policy needs the folder of its site files; none is named. Give "
                f"'site_files' in its local/privacy.json, or the variable {VARIABLE} where the "
                f"client starts; {PHANTOM!r} in place of a folder is the phantom."
            )
        given = own
    folder = offered_data.site_files(given)
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    if site not in names:
        raise SiteError(
            f"site file {folder / site}.yaml does not exist; {folder} has sites {names}. Give the "
            f"folder of your site files: --site-files (the setting 'sites'), the variable "
            f"{VARIABLE} where the client starts, or 'site_files' in the site's local/privacy.json."
        )
    return folder / f"{site}.yaml"

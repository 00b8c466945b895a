"""What the data of sites are: counted, compared and drawn before anyone trains on them."""

from cxr_study.audit.flare_job import from_flare_job
from cxr_study.audit.shared_census import SharedCensus
from cxr_study.audit.shared_file import read_shared
from cxr_study.audit.write import write_audit, write_cross_site

__all__ = ["SharedCensus", "from_flare_job", "read_shared", "write_audit", "write_cross_site"]

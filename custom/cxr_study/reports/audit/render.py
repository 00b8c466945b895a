"""Makes the HTML page of an audit: one file that needs nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cxr_study.common.wording import Notice
from cxr_study.data.census import census as cells
from cxr_study.data.census.across_sites import Across
from cxr_study.data.census.census import Census
from cxr_study.data.census.samples import Sample
from cxr_study.data.census.shareable_census import SharedCensus
from cxr_study.reports.audit import figures, label_figures, view
from cxr_study.reports.audit import notices as noticed
from cxr_study.reports.page.html import picture, template


@dataclass(frozen=True, eq=False)
class SitePage:
    """What the page of a site that is at hand shows.

    Attributes:
        census: Complete.
        shared: What others would see of it.
        intensity: Mean histogram of grey values; see `pixels.measure`.
        samples: Pictures.
    """

    census: Census
    shared: SharedCensus
    intensity: np.ndarray
    samples: Sequence[Sample]


def render(across: Across, pages: Sequence[SitePage], notices: Sequence[Notice]) -> str:
    """Make the page.

    Args:
        across: All sites, compared.
        pages: Of the sites at hand; may be empty.
        notices: To stand before all others.
    """
    return template(__package__, number=view.number, share=view.share).render(
        across=across,
        pages=pages,
        notices=notices,
        cells=cells,
        figures=figures,
        label_figures=label_figures,
        noticed=noticed,
        picture=picture,
        view=view,
    )

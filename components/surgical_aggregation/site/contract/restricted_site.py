"""A site restricted to the classes that its policy shares, and how a job finds it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.site.contract.site import Site, SiteError, Split
from surgical_aggregation.site.contract.site_policy import site_policy, withheld
from surgical_aggregation.wire.privacy_json import PolicyError

if TYPE_CHECKING:  # TensorFlow must not start before its threads are set
    import keras
    import tensorflow as tf


class PermittedSite(Site):
    """A site restricted to the classes that its policy shares.

    Labels, data and head have no trace of the withheld classes, also if every site's head has a
    unit for every class of the union.

    Args:
        site: The unrestricted site.
        withheld: Withheld class -> reason.
    """

    def __init__(self, site: Site, withheld: Mapping[str, str]):
        super().__init__()
        self.site = site
        self.withheld = withheld

    @property
    def classes(self) -> tuple[str, ...]:
        """The shared classes, in the unrestricted site's order."""
        return tuple(name for name in self.site.classes if name not in self.withheld)

    @cached_property
    def training_labels(self) -> NDArray[np.float32]:
        """Labels of the shared classes; see `Site.training_labels`."""
        return self.site.training_labels[:, self._columns]

    @property
    def network_facts(self) -> Mapping[str, Any]:
        """The unrestricted site's; see `Site.network_facts`."""
        return self.site.network_facts

    def model(self) -> keras.Model:
        """The unrestricted site's network with a smaller head."""
        import keras

        from surgical_aggregation.site.contract.architecture import head_layer

        whole = self.site.model()
        head = head_layer(whole, self.site.classes)
        smaller = keras.layers.Dense.from_config({**head.get_config(), "units": len(self.classes)})
        return keras.Model(whole.input, smaller(head.input), name=whole.name)

    def data(self, split: Split, *, training: bool = False, first_pass: int = 0) -> tf.data.Dataset:
        """The unrestricted site's batches with fewer labels; see `Site.data`."""
        import tensorflow as tf

        columns = tf.constant(self._columns)
        whole = self.site.data(split, training=training, first_pass=first_pass)
        return whole.map(lambda images, labels: (images, tf.gather(labels, columns, axis=1)))

    @property
    def _columns(self) -> list[int]:
        return [self.site.classes.index(name) for name in self.classes]


def find_site(fl_ctx: FLContext) -> Site:
    """The site component of the running job, restricted by the site's policy.

    Components must get the site only here, so that all of them see the same classes.

    Args:
        fl_ctx: Context of the running job.

    Raises:
        SiteError: The job has no `Site`, or more than one.
        PolicyError: The policy is malformed, or by it the site must not participate.
    """
    components = fl_ctx.get_engine().get_all_components()
    sites = {id_: found for id_, found in components.items() if isinstance(found, Site)}
    if len(sites) != 1:
        raise SiteError(
            f"a job needs one Site component; got {', '.join(sorted(sites)) or 'none'}. Check "
            "`components` in the job's config_fed_client."
        )
    (site,) = sites.values()
    site.policy, site.identity = site_policy(fl_ctx), fl_ctx.get_identity_name()
    if site.policy.refuse_union_head and site.union_head:
        raise PolicyError(
            "this site's policy has 'refuse_union_head', and in this job every site's head has the "
            "classes of all sites."
        )
    stay = withheld(site.policy, site.classes, lambda: site.training_labels)
    if not stay:
        return site
    cut_down = PermittedSite(site, stay)
    cut_down.policy, cut_down.identity = site.policy, site.identity
    cut_down.union_head = site.union_head
    return cut_down


def withheld_classes(site: Site) -> Mapping[str, str]:
    """Classes that are withheld of a site that `find_site` found, with the reason."""
    return site.withheld if isinstance(site, PermittedSite) else {}

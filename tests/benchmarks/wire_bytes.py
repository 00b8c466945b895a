"""What a round puts on the wire between the server and one site of 14 classes, by strategy.

Serialises the task and the result as the job's own filters leave them.
"""

import measure  # noqa: F401  # helpers of the tests can be imported then
import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.fuel.utils import fobs
from nvflare.private.fed.utils.fed_utils import fobs_initialize

from cxr_studies.plan.row import Row
from cxr_study.data.labels.vocabulary import NIH_CLASSES, UNION_CLASSES
from cxr_study.jobs.methods import METHODS
from flare import Engine, context
from surgical_aggregation.aggregation.strategy import kept_at_site
from surgical_aggregation.server.access.class_filters import SelectHead
from surgical_aggregation.server.models.global_model import GlobalModel, MergeIntoGlobalModel
from surgical_aggregation.site.contract.architecture import variable_kinds
from surgical_aggregation.site.contract.site import Site
from surgical_aggregation.site.label_head import LabelHead
from surgical_aggregation.wire import variables as wire

ROWS = {
    Row("surgical", "fedavg"): NIH_CLASSES,
    Row("surgical", "fedbn"): NIH_CLASSES,
    Row("surgical", "fedbn+"): NIH_CLASSES,
    Row("personalised", "fedavg"): NIH_CLASSES,
    Row("personalised", "fedbn+"): NIH_CLASSES,
    Row("vanilla", "fedavg"): UNION_CLASSES,
    Row("partial_loss", "fedbn+"): UNION_CLASSES,
}
"""Row -> classes of the site's head."""


class SiteOfClasses(Site):
    """As much of a site as `LabelHead` asks for."""

    classes = model = data = None


def serialised(model, row, classes):
    """Bytes of a task and of a result: what SelectHead, the strategy and LabelHead leave of it."""
    trained = {v.path: v.numpy() for v in model.weights}
    body = {path: value for path, value in trained.items() if not path.startswith("head/")}
    columns, kept = {}, kept_at_site(row.strategy, body, variable_kinds(model))
    if METHODS[row.method].personal_head:
        kept |= trained.keys() - body.keys()
    else:
        kernel, bias = trained["head/kernel"], trained["head/bias"]
        columns = {name: (kernel[:, i], bias[i : i + 1]) for i, name in enumerate(classes)}
    site = SiteOfClasses()
    site.classes = tuple(columns)
    fl_ctx = context("nih", site.classes, engine=Engine(site=site))
    learnable = GlobalModel(wire.join(body, columns)).to_learnable()
    task = MergeIntoGlobalModel().learnable_to_shareable(learnable, fl_ctx)
    task = SelectHead().process(task, fl_ctx)
    sent = {path: value for path, value in trained.items() if path not in kept}
    result = DXO(DataKind.WEIGHTS, data=sent).to_shareable()
    if columns:
        result = LabelHead().process(result, fl_ctx)
    return len(fobs.dumps(task)), len(fobs.dumps(result))


def show(title, sizes):
    print(f"\n{title}")
    print(f"{'':28}{'to the site':>14}{'from the site':>16}{'both':>14}{'of FedAvg':>12}")
    against = sum(next(iter(sizes.values())))
    for row, (task, result) in sizes.items():
        both = task + result
        name = f"{row.method} {row.strategy}"
        print(f"{name:28}{task:14,.0f}{result:16,.0f}{both:14,.0f}{both / against:12.1%}")


def main():
    fobs_initialize()
    from cxr_study.training.network import build

    networks = {"small_densenet": 64, "densenet121": 224}
    for backbone, size in networks.items():
        sizes = {}
        for row, classes in ROWS.items():
            model = build(backbone, len(classes), image_size=size)
            sizes[row] = serialised(model, row, classes)
        count = sum(int(np.prod(v.shape)) for v in model.weights)
        show(f"{backbone}, {count:,} numbers: bytes of a round, serialised", sizes)


if __name__ == "__main__":
    main()

"""The body that is pre-trained on drawings."""

from cxr_phantom.pretrain import pretrained_body
from cxr_phantom.pretraining_images import SOURCE_CATEGORIES
from cxr_study.training.network import build
from surgical_aggregation.site.contract.architecture import body_variables
from surgical_aggregation.site.contract.site import check_body, shapes_of


def test_a_pretrained_body_fits_has_learned_and_says_how_it_was_made():
    body = pretrained_body(images=800, epochs=6, size=32, seed=1)
    network = build("small_densenet", 2, image_size=32)
    check_body(shapes_of(body.variables), shapes_of(body_variables(network)))
    facts = {
        "backbone": "small_densenet", "image_size": 32, "weights": "source pictures", "seed": 1,
        "head_features": network.layers[-1].kernel.shape[0],
    }  # fmt: skip
    assert {name: body.manifest[name] for name in facts} == facts
    assert body.manifest["source_accuracy"] > 2 / len(SOURCE_CATEGORIES)

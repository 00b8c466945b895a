from cxr_study.phantom.pretraining_images import SOURCE_CATEGORIES
from cxr_study.training.pretrain import pretrained_body


def test_the_body_fits_the_small_densenet_has_learned_and_says_how_it_was_made():
    body = pretrained_body(images=800, epochs=6, size=32, seed=1)
    from cxr_study.training.network import build
    from surgical_aggregation.site.training.keras_model import LocalModel

    network = build("small_densenet", 2, image_size=32)
    model = LocalModel(network, ("a", "b"))
    model.set_body(body.variables)  # raises where names or shapes differ
    facts = {
        "backbone": "small_densenet", "image_size": 32, "weights": "source pictures", "seed": 1,
        "head_features": model.variables()["head/kernel"].shape[0],
    }  # fmt: skip
    assert {name: body.manifest[name] for name in facts} == facts
    assert body.manifest["source_accuracy"] > 2 / len(SOURCE_CATEGORIES)

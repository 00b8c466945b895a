"""Names of the networks' bodies, for those who need them without Keras; see `model.build`."""

BACKBONES = ("densenet121", "small_densenet", "tiny_densenet")

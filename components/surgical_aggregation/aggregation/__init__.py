"""The maths of surgical aggregation: no FLARE, no Keras."""

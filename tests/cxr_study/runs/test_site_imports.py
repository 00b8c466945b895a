"""What is imported once for all sites of a simulator."""

import subprocess
import sys

PROGRAM = """
import os, sys
import cxr_study.runs.site_imports

there = set(sys.modules)
if child := os.fork():
    sys.exit(os.waitpid(child, 0)[1])
from surgical_aggregation.site.training import tensorflow_setup
tensorflow_setup.configure(1, 0)  # refused where TensorFlow has been used
import tensorflow as tf
from cxr_study.training.network import build
from surgical_aggregation.site.training.trainer import LocalTraining

image = tf.zeros((1, 16, 16, 3))
print(build("tiny_densenet", 2, image_size=16)(image).shape, *set(sys.modules) - there, flush=True)
"""


def test_a_fork_uses_tensorflow_at_once():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shape, more = done.stdout[:6], done.stdout[6:].split()
    assert shape == "(1, 2)"
    assert len(more) < 100, more

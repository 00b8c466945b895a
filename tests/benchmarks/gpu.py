"""DenseNet121 on a GPU: images a second and memory, compared with plain Keras and torch.

Usage: python tests/benchmarks/gpu.py [--side 224] [--batches 64 256 512] [--images 4096]

Every line of the table is a process of its own, so that none finds another's memory or kernels. It
trains three times over the same images; the fastest counts, the first, which traces, does not.
Where TensorFlow sees no GPU it says so and ends with 1. That the script itself works is tried in a
minute or two by: --device CPU --backbone tiny_densenet --side 32 --batches 16 --images 64
--precisions float32 --loops site keras

    site    as a site trains: images from a memory map, augmented; the same seed gives the same bits
    plain   as a site, without augmentation
    keras   Keras's own step of the same network, on a batch that is in the device's memory: what
            "plain" lacks to it is the feeding
    torch   torchvision's DenseNet121, channels last, autocast, compiled; where torch is installed
    2 sites two processes as in "site" on one device, both together
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import fastest, options

PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")
CLASSES = 14
PROCESSES = {"2 sites": 2}
LOOPS = (
    *(("site", False), ("plain", False), ("keras", False), ("keras", True)),
    *(("torch", True), ("2 sites", False)),
)
"""Loop, and whether XLA compiles."""


def lines(wanted):
    """What is measured: loop, precision, whether XLA compiles, and images in a batch."""
    for batch in wanted.batches:
        for precision in wanted.precisions:
            for loop, xla in LOOPS:
                if loop in wanted.loops and (loop != "2 sites" or precision == "mixed_float16"):
                    yield loop, precision, xla, batch


def images_and_labels(wanted):
    """Random images, memory-mapped as the store's are from a file that is gone then, and labels."""
    rng = np.random.default_rng(0)
    labels = (rng.random((wanted.images, CLASSES)) < 0.2).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "images.npy")
        np.save(file, rng.integers(0, 256, (wanted.images, wanted.side, wanted.side), np.uint8))
        return np.load(file, mmap_mode="r"), labels


def keras_site(wanted, precision, batch, augmentation):
    """A function that trains one round as a site does."""
    import keras

    from cxr_study.training.input_pipeline import dataset
    from cxr_study.training.network import build
    from surgical_aggregation.site.training.local_model import LocalModel
    from surgical_aggregation.site.training.training_options import TrainingOptions

    keras.config.set_dtype_policy(precision)
    network = build(wanted.backbone, CLASSES, image_size=wanted.side)
    classes = tuple(f"Finding {number}" for number in range(CLASSES))
    model = LocalModel(network, classes, TrainingOptions(strategy="fedavg"))
    images, labels = images_and_labels(wanted)
    data = dataset(images, labels, batch_size=batch, shuffle_seed=0, augmentation=augmentation)
    return lambda: model.train(data)


def plain_keras(wanted, precision, batch, xla):
    """A function that trains one epoch by Keras alone, from the device's memory."""
    import keras
    import tensorflow as tf

    from cxr_study.training.input_pipeline import normalised
    from cxr_study.training.network import build

    keras.config.set_dtype_policy(precision)
    network = build(wanted.backbone, CLASSES, image_size=wanted.side)
    network.compile(keras.optimizers.Adam(5e-5), "binary_crossentropy")
    step = tf.function(network.train_step, jit_compile=xla)
    images, labels = images_and_labels(wanted)
    with tf.device(wanted.device):  # which a dataset's batches are not: those are the host's
        one = normalised(tf.constant(images[:batch])), tf.constant(labels[:batch])

    def epoch():
        for _ in range(wanted.images // batch):
            logs = step(one)
        return float(logs["loss"])  # waits for the device

    return epoch


def torch_loop(wanted, precision, batch):
    """A function that trains one epoch by torch; `ImportError` where that is not installed."""
    import torch
    from torchvision.models import densenet121

    device = "cuda" if wanted.device == "GPU" else "cpu"
    network = densenet121(num_classes=CLASSES).to(device, memory_format=torch.channels_last)
    network = torch.compile(network)
    adam = torch.optim.Adam(network.parameters(), 5e-5, fused=device == "cuda")
    kind = {"mixed_float16": torch.float16, "mixed_bfloat16": torch.bfloat16}.get(precision)
    scaler = torch.amp.GradScaler(device, enabled=kind == torch.float16)
    shape = (batch, 3, wanted.side, wanted.side)
    images = torch.rand(shape, device=device).to(memory_format=torch.channels_last)
    labels = (torch.rand((batch, CLASSES), device=device) < 0.2).float()

    def epoch():
        for _ in range(wanted.images // batch):
            with torch.autocast(device, dtype=kind, enabled=kind is not None):
                out = network(images)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(out.float(), labels)
            adam.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(adam)
            scaler.update()
        return float(loss.detach())  # waits for the device

    return epoch


def measure(wanted):
    """Images a second and the device's peak memory, of one line, in this process."""
    loop, precision, xla, batch = json.loads(wanted.line)
    if loop == "torch":
        epoch = torch_loop(wanted, precision, batch)
    elif loop == "keras":
        epoch = plain_keras(wanted, precision, batch, xla)
    else:
        from surgical_aggregation.site.training.tensorflow_setup import configure, cores

        configure(cores(), seed=0)
        augmentation = "none" if loop == "plain" else "radiology"
        epoch = keras_site(wanted, precision, batch, augmentation)
    speed = wanted.images // batch * batch / fastest(epoch, repeats=2)
    print(json.dumps({"speed": speed, "memory": peak_memory(loop)}))


def peak_memory(loop):
    """The device's peak memory in this process, MB; None where it has none of its own."""
    if loop == "torch":
        import torch

        return torch.cuda.max_memory_allocated() / 1e6 if torch.cuda.is_available() else None
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        return None
    return tf.config.experimental.get_memory_info("GPU:0")["peak"] / 1e6


def measured(line):
    """What one or several processes say of a line, together; or why they could not."""
    command = [sys.executable, *sys.argv, "--line", json.dumps(line)]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": quiet}
    running = [subprocess.Popen(command, **pipes) for _ in range(PROCESSES.get(line[0], 1))]
    ended = [process.communicate() for process in running]
    if any(process.returncode for process in running):
        last = [err.strip().splitlines()[-1] for _, err in ended if err.strip()]
        return (last or ["ended without a word"])[0][:60]
    output = [json.loads(out.splitlines()[-1]) for out, _ in ended]
    memory = [one["memory"] for one in output if one["memory"] is not None]
    return sum(one["speed"] for one in output), sum(memory) if memory else None


def devices(kind):
    """Names of the devices of a kind that TensorFlow sees, asked in another process."""
    code = (
        "import tensorflow as tf; details = tf.config.experimental.get_device_details; "
        f"there = tf.config.list_physical_devices({kind!r}); "
        "print(*(details(each).get('device_name', each.name) for each in there), sep='; ')"
    )
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return asked.stdout.strip()


def main():
    wanted = options(
        __doc__, device="GPU", backbone="densenet121", side=224, batches=[64, 256, 512],
        images=4096, precisions=list(PRECISIONS), loops=list(dict(LOOPS)), line="",
    )  # fmt: skip
    if wanted.line:
        return measure(wanted)
    there = devices(wanted.device)
    if not there:
        return (
            f"TensorFlow sees no {wanted.device} here, so there is nothing to measure. With one: "
            "pip install 'surgical-aggregation[gpu]', and `nvidia-smi` lists it."
        )
    print(f"{wanted.backbone}, {wanted.side} pixels, on {there}\n")
    print("| loop | precision | XLA | batch | images/s | memory, MB |\n|---|---|---|---|---|---|")
    for line in lines(wanted):
        found = measured(line)
        if isinstance(found, tuple):
            found = " | ".join("" if n in ("", None) else f"{n:,.0f}" for n in found)
        else:
            found = f"{found} | "
        loop, precision, xla, batch = line
        compiled = "yes" if xla else "no"
        print(f"| {loop} | {precision} | {compiled} | {batch} | {found} |", flush=True)
    return None


if __name__ == "__main__":
    sys.exit(main())

"""Trains a line on each device of this machine, and checks that the build is the one that its name says."""

import sys

import tensorflow as tf

assert tf.test.is_built_with_cuda() == (sys.argv[1] == "cuda")
devices = tf.config.list_logical_devices("CPU") + tf.config.list_logical_devices("GPU")
for device in devices:
    with tf.device(device.name):
        assert float(tf.reduce_sum(tf.linalg.matmul([[1.0, 2.0]], [[3.0], [4.0]]))) == 11.0
        x, slope = tf.constant([[1.0], [2.0], [3.0]]), tf.Variable([[0.0]])
        for _ in range(100):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ slope - 2 * x) ** 2)
            slope.assign_sub(0.1 * tape.gradient(loss, slope))
        assert abs(float(slope[0, 0]) - 2) < 1e-3, slope
        print(f"{device.name}: slope {float(slope[0, 0]):.4f}")

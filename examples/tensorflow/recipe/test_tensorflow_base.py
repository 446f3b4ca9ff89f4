"""Does the package compute, and was it built for what its name says?"""

import os

import tensorflow as tf

assert tf.reduce_sum(tf.constant([1, 2, 3])).numpy() == 6
with tf.GradientTape() as tape:
    x = tf.Variable(3.0)
    y = x * x
assert tape.gradient(y, x).numpy() == 6.0

for_gpu = os.environ.get("cuda_compiler_version", "None") != "None"
assert tf.test.is_built_with_cuda() == for_gpu, f"built with CUDA: {not for_gpu}"

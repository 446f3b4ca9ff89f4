"""Computes a product, and checks that the build is the one that its name says."""

import sys

import tensorflow as tf

assert tf.test.is_built_with_cuda() == (sys.argv[1] == "cuda")
assert float(tf.reduce_sum(tf.linalg.matmul([[1.0, 2.0]], [[3.0], [4.0]]))) == 11.0

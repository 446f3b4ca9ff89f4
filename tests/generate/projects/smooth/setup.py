import numpy
from setuptools import Extension, setup

setup(ext_modules=[Extension("smooth._core", ["src/smooth/core.c"], include_dirs=[numpy.get_include()])])

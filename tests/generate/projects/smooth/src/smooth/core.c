#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>

static PyObject *mean(PyObject *self, PyObject *argument) {
    PyArrayObject *array = (PyArrayObject *)PyArray_FROM_OTF(argument, NPY_DOUBLE, NPY_ARRAY_IN_ARRAY);
    if (array == NULL) return NULL;
    double sum = 0;
    npy_intp size = PyArray_SIZE(array);
    for (npy_intp i = 0; i < size; i++) sum += ((double *)PyArray_DATA(array))[i];
    Py_DECREF(array);
    return PyFloat_FromDouble(size ? sum / size : 0);
}

static PyMethodDef methods[] = {{"mean", mean, METH_O, "The mean of an array."}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_core", NULL, -1, methods};

PyMODINIT_FUNC PyInit__core(void) {
    import_array();
    return PyModule_Create(&module);
}

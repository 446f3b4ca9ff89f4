#include <Python.h>
static PyObject *fast(PyObject *self, PyObject *unused) {
#ifdef WAVE_FAST
    Py_RETURN_TRUE;
#else
    Py_RETURN_FALSE;
#endif
}
static PyMethodDef methods[] = {{"fast", fast, METH_NOARGS, "Whether checks are left out."}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_core", NULL, -1, methods};
PyMODINIT_FUNC PyInit__core(void) { return PyModule_Create(&module); }

#include <Python.h>

#include "caffe/caffe.hpp"

static PyObject* Version(PyObject*, PyObject*) {
  return PyUnicode_FromString(caffe::Caffe::version());
}

static PyObject* Twice(PyObject*, PyObject* number) {
  std::vector<double> bottom(1, PyFloat_AsDouble(number)), top;
  if (PyErr_Occurred()) {
    return NULL;
  }
  caffe::TwiceLayer<double>().Forward(bottom, &top);
  return PyFloat_FromDouble(top[0]);
}

static PyMethodDef methods[] = {
  {"version", Version, METH_NOARGS, "The version of the library."},
  {"twice", Twice, METH_O, "Twice the number, by the layer."},
  {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_caffe", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__caffe(void) { return PyModule_Create(&module); }

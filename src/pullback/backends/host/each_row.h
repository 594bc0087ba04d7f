/* Functions of the rows of small arrays, by this thread, in one call: `run` takes longer to read its arguments. */

PyDoc_STRVAR(each_row_doc, "each_row(loop, kept, reduces, *operands)\n\n"
    "Apply a function to each row of some arrays.\n\n"
    "Args:\n"
    "  loop: that of a function of whole rows, of `own`.\n"
    "  kept: how many axes there are before those of a row.\n"
    "  reduces: whether the result has one element for each row.\n"
    "  operands: one or two arrays of the same shape and dtype.\n\n"
    "Returns:\n"
    "  An array of the operands' dtype and shape, or of its first axes; None if the operands are not alike, or not side by\n"
    "  side in row-major order.");

static PyObject *each_row(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    const int arity = (int)count - 3;
    if (arity < 1 || arity > 2 || !PyTuple_Check(args[0]) || PyTuple_GET_SIZE(args[0]) != 2)
        return PyErr_Format(PyExc_TypeError, "expected a loop, a number of axes, a boolean, and one or two arrays");
    Loop *loop = (Loop *)PyLong_AsVoidPtr(PyTuple_GET_ITEM(args[0], 0));
    void *data = PyLong_AsVoidPtr(PyTuple_GET_ITEM(args[0], 1));
    const long kept = PyLong_AsLong(args[1]);
    const int reduces = PyObject_IsTrue(args[2]);
    if (PyErr_Occurred()) return NULL;
    PyArrayObject *x[2] = {NULL, NULL};
    for (int k = 0; k < arity; k++) {
        x[k] = (PyArrayObject *)args[3 + k];
        if (!PyArray_Check(args[3 + k]) || !PyArray_ISCARRAY_RO(x[k])) Py_RETURN_NONE;
        if (PyArray_TYPE(x[k]) != PyArray_TYPE(x[0]) || !PyArray_SAMESHAPE(x[k], x[0])) Py_RETURN_NONE;
    }
    const int ndim = PyArray_NDIM(x[0]);
    npy_intp rows = 1, columns = 1;
    for (int i = 0; i < ndim; i++) *(i < kept ? &rows : &columns) *= PyArray_DIM(x[0], i);
    if (!loop || data != RUNS || kept < 0 || kept > ndim || columns > MOST_OF_A_ROW)
        return PyErr_Format(PyExc_ValueError, "expected a function of whole rows, and arrays with so many axes and short rows");
    PyObject *out = PyArray_SimpleNew(reduces ? (int)kept : ndim, PyArray_DIMS(x[0]), PyArray_TYPE(x[0]));
    if (!out) return NULL;
    const npy_intp item = PyArray_ITEMSIZE(x[0]), strides[3] = {item, item, item};
    char *start[3] = {PyArray_BYTES(x[0]), PyArray_BYTES(x[arity - 1]), NULL};
    start[arity] = PyArray_BYTES((PyArrayObject *)out);
    fenv_t environment;
    feholdexcept(&environment); /* loops leave flags, which are not this thread's */
    for (npy_intp r = 0; r < rows && columns > 0; r++) {
        char *arguments[3] = {start[0], start[1], start[2]};
        loop(arguments, &columns, strides, NULL);
        for (int k = 0; k <= arity; k++) start[k] += k == arity && reduces ? item : columns * item;
    }
    fesetenv(&environment);
    return out;
}

/* Reductions of whole rows of an array, and of the results of their pieces, in one call of Python's. */

/* Reduce rows of items by this thread; 0 if there is no memory for the pieces. A row has at most LARGEST_PIECE of these. */
static int reduce_here(Reduction *reduction, const char *x, npy_intp rows, npy_intp columns, npy_intp item, npy_intp piece, char *result) {
    const npy_intp count = (columns + piece - 1) / piece;
    char *memory = count > 1 ? malloc(rows * count * item) : NULL;
    if (count > 1 && !memory) return 0;
    Rows operands[2] = {{x, columns * item}, {count > 1 ? memory : result, count * item}};
    fenv_t environment;
    feholdexcept(&environment);
    reduction(operands, rows, columns, piece, 0);
    if (count > 1) {
        operands[0] = operands[1];
        operands[1] = (Rows){result, item};
        reduction(operands, rows, count, LARGEST_PIECE, 0);
    }
    fesetenv(&environment);
    free(memory);
    return 1;
}

PyDoc_STRVAR(fold_doc, "fold(loop, pieces)\n\n"
    "Reduce the rows of a matrix, by this thread.\n\n"
    "Args:\n"
    "  loop: that of a reduction of one operand, of `own`.\n"
    "  pieces: the matrix, whose elements are side by side, with at least one column.\n\n"
    "Returns:\n"
    "  A vector.");

static PyObject *fold(PyObject *module, PyObject *args) {
    PyObject *loop, *data;
    PyArrayObject *x;
    if (!PyArg_ParseTuple(args, "(OO)O!", &loop, &data, &PyArray_Type, &x)) return NULL;
    Reduction *reduction = (Reduction *)PyLong_AsVoidPtr(loop);
    void *kind = PyLong_AsVoidPtr(data);
    if (PyErr_Occurred()) return NULL;
    if (!reduction || kind != REDUCES || PyArray_NDIM(x) != 2 || !PyArray_IS_C_CONTIGUOUS(x) || PyArray_DIM(x, 1) < 1) {
        PyErr_SetString(PyExc_ValueError, "expected a reduction of rows, and a matrix whose elements are side by side");
        return NULL;
    }
    npy_intp rows = PyArray_DIM(x, 0), columns = PyArray_DIM(x, 1), item = PyArray_ITEMSIZE(x);
    PyObject *out = PyArray_SimpleNew(1, &rows, PyArray_TYPE(x));
    if (!out) return NULL;
    if (!reduce_here(reduction, PyArray_BYTES(x), rows, columns, item, LARGEST_PIECE, PyArray_BYTES((PyArrayObject *)out))) {
        Py_DECREF(out);
        return PyErr_NoMemory();
    }
    return out;
}

enum {
    REDUCED_BLOCK = 1 << 16,  /* bytes: a row of two blocks is one piece */
    REDUCED_SHARE = 1 << 17,  /* elements that are worth a thread */
    FOLDED = 1 << 17,         /* the least results of pieces that several threads reduce further */
};

/* Reduce pieces of rows by this thread and others, and the results of pieces by this thread; 0 with an error. */
static int reduce_by_threads(Reduction *reduction, char *x, npy_intp rows, npy_intp columns, npy_intp item, npy_intp piece, char *result, long helpers) {
    const npy_intp count = (columns + piece - 1) / piece;
    char *memory = count > 1 ? malloc(rows * count * item) : result;
    Job job = {.compute = run_block, .groups = 1, .group = rows, .columns = columns, .ndim = 2, .most_helpers = helpers};
    int failed = !memory || prepare_job(&job, 2, 1);
    if (!memory) PyErr_NoMemory();
    if (!failed) {
        job.values[0] = (Value){.data = x, .strides = {rows * columns * item, columns * item, item}};
        job.values[1] = (Value){.data = memory, .strides = {0, count * item, item}, .piece = piece, .axis = 2};
        job.steps[0] = (Step){.loop = (void *)reduction, .data = REDUCES, .arity = 1, .operands = {0, 1}};
        failed = run_job(&job, REDUCED_BLOCK, item);
    }
    end_job(&job);
    if (!failed && count > 1 && !reduce_here(reduction, memory, rows, count, item, LARGEST_PIECE, result)) {
        PyErr_NoMemory();
        failed = 1;
    }
    if (count > 1) free(memory);
    return !failed;
}

static const struct {
    const char *name;
    Reduction *of_floats, *of_doubles;
} REDUCTIONS_OF_ROWS[] = {
    {"sum", sum_f, sum_d}, {"product", product_f, product_d}, {"largest", largest_f, largest_d}, {"least", least_f, least_d},
};

PyDoc_STRVAR(reduced_doc, "reduced(kind, x, axes, /)\n--\n\n"
    "Reduce an array along its last axes, on all cores.\n\n"
    "Args:\n"
    "  kind: `sum`, `product`, `largest` or `least`.\n"
    "  x: an array.\n"
    "  axes: some of its axes, in ascending order.\n\n"
    "Returns:\n"
    "  The array of the other axes, or a scalar of NumPy's; None if `x` is not of floats of 32 or 64 bits side by side, has\n"
    "  no elements, or more than one call is to reduce, or if `axes` are not its last ones.");

static PyObject *reduced(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !PyUnicode_Check(args[0]) || !PyTuple_Check(args[2]))
        return PyErr_Format(PyExc_TypeError, "expected a name, an array and a tuple");
    if (!PyArray_CheckExact(args[1])) Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)args[1];
    const int type = PyArray_TYPE(x), kept = PyArray_NDIM(x) - (int)PyTuple_GET_SIZE(args[2]);
    const npy_intp size = PyArray_SIZE(x), item = PyArray_ITEMSIZE(x);
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !PyArray_ISCARRAY_RO(x) || !size || kept < 0 || kept == PyArray_NDIM(x)) Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[2]); i++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(args[2], i)) != kept + i) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    Reduction *reduction = NULL;
    for (size_t i = 0; i < sizeof REDUCTIONS_OF_ROWS / sizeof *REDUCTIONS_OF_ROWS; i++)
        if (PyUnicode_CompareWithASCIIString(args[0], REDUCTIONS_OF_ROWS[i].name) == 0)
            reduction = type == NPY_FLOAT ? REDUCTIONS_OF_ROWS[i].of_floats : REDUCTIONS_OF_ROWS[i].of_doubles;
    if (!reduction) return PyErr_Format(PyExc_ValueError, "no reduction is called %R", args[0]);
    npy_intp rows = 1;
    for (int i = 0; i < kept; i++) rows *= PyArray_DIM(x, i);
    const npy_intp columns = size / rows, piece = columns <= 2 * REDUCED_BLOCK / item ? columns : PART;
    if (piece < columns && rows * ((columns + piece - 1) / piece) >= FOLDED) Py_RETURN_NONE;
    PyArrayObject *out = (PyArrayObject *)PyArray_SimpleNew(kept, PyArray_DIMS(x), type);
    if (!out) return NULL;
    const long helpers = size / REDUCED_SHARE < other_cores ? (long)(size / REDUCED_SHARE) : other_cores;
    int is_done;
    if (helpers > 0) {
        is_done = reduce_by_threads(reduction, PyArray_BYTES(x), rows, columns, item, piece, PyArray_BYTES(out), helpers);
    } else {
        Py_BEGIN_ALLOW_THREADS
        is_done = reduce_here(reduction, PyArray_BYTES(x), rows, columns, item, piece, PyArray_BYTES(out));
        Py_END_ALLOW_THREADS
        if (!is_done) PyErr_NoMemory();
    }
    if (is_done) return PyArray_Return(out);
    Py_DECREF(out);
    return NULL;
}

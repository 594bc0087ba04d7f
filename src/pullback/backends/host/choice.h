/* A function of an array that is one of two: of few elements, or of many in single precision. It is a type of its own,
   for in Python the question would take a small array a twentieth of the time of its operation. */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *of_few, *of_many;
    Py_ssize_t least;
} BySize;

static PyObject *by_size_call(PyObject *self, PyObject *const *args, size_t count, PyObject *names) {
    BySize *choice = (BySize *)self;
    int is_many = 0;
    if (PyVectorcall_NARGS(count) == 1 && PyArray_CheckExact(args[0])) {
        PyArrayObject *x = (PyArrayObject *)args[0];
        is_many = PyArray_TYPE(x) == NPY_FLOAT && PyArray_SIZE(x) >= choice->least;
    }
    return PyObject_Vectorcall(is_many ? choice->of_many : choice->of_few, args, count, names);
}

static PyObject *by_size_new(PyTypeObject *type, PyObject *args, PyObject *names) {
    PyObject *of_few, *of_many;
    Py_ssize_t least;
    if (!PyArg_ParseTuple(args, "OOn", &of_few, &of_many, &least)) return NULL;
    BySize *self = (BySize *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    Py_INCREF(of_few);
    Py_INCREF(of_many);
    self->call = by_size_call;
    self->of_few = of_few;
    self->of_many = of_many;
    self->least = least;
    return (PyObject *)self;
}

static int by_size_traverse(BySize *self, visitproc visit, void *arg) {
    Py_VISIT(self->of_few);
    Py_VISIT(self->of_many);
    return 0;
}

static int by_size_clear(BySize *self) {
    Py_CLEAR(self->of_few);
    Py_CLEAR(self->of_many);
    return 0;
}

static void by_size_free(BySize *self) {
    PyObject_GC_UnTrack(self);
    by_size_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMemberDef BY_SIZE_MEMBERS[] = {
    {"of_few", T_OBJECT_EX, offsetof(BySize, of_few), READONLY, "The function of few elements, and of other dtypes."},
    {"of_many", T_OBJECT_EX, offsetof(BySize, of_many), READONLY, "The function of many elements."},
    {"least", T_PYSSIZET, offsetof(BySize, least), 0, "How many are many."},
    {NULL},
};

PyDoc_STRVAR(by_size_doc, "BySize(of_few, of_many, least, /)\n--\n\n"
    "A function of an array: ``of_many`` for ``least`` and more elements in single precision, ``of_few`` for others.");

static PyTypeObject BY_SIZE = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "pullback.backends.host.loops.BySize", .tp_basicsize = sizeof(BySize),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, .tp_doc = by_size_doc,
    .tp_new = by_size_new, .tp_dealloc = (destructor)by_size_free, .tp_traverse = (traverseproc)by_size_traverse,
    .tp_clear = (inquiry)by_size_clear, .tp_members = BY_SIZE_MEMBERS, .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(BySize, call),
};

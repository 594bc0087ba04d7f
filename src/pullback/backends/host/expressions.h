/* Expressions of pending elements: what is done for each operation on large arrays, and for each evaluation.

   `pending.py` says what pending elements are, and decides which operations have them; `native.py` plans evaluations. Here
   are the steps that follow each time. After a loop over a large array the caches hold nothing of Python's, and its
   interpreter would take as long as such a loop. Attributes that Python's classes keep in slots are read where they are. */

/* Classes, functions and bounds, from `pend`. */
static struct {
    PyTypeObject *array, *absent, *pending;
    PyObject *operation; /* `_operation` */
    PyObject *are_held;  /* `_are_integers_held` */
    PyObject *plan;      /* `_plan` */
    PyObject *viewed;    /* `native.viewed` */
    PyObject *memory_needed;
    Py_ssize_t most_steps, most_passed, most_spread;
} python;

/* Where instances have their slots. */
static struct {
    Py_ssize_t host_value, weak_type;                                               /* of arrays */
    Py_ssize_t aval, absent_dtype, pending, absent_shape;                           /* of `Absent` */
    Py_ssize_t dtype, holder, known, operands, operation, params, passed, shape;    /* of `Pending` */
    Py_ssize_t result, is_slow, is_identity, most_kept;                             /* of `Operation` */
    Py_ssize_t type_shape, type_dtype, type_weak_type;                              /* of `ShapedArray` */
    Py_ssize_t arrays, block, free, helpers, numbers, outs, pieces, sizes, slots, steps; /* of `Plan` */
} at;

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

static PyObject *no_operands, *name_shape, *name_read;

static void set_slot(PyObject *object, Py_ssize_t offset, PyObject *value) {
    PyObject *before = SLOT(object, offset);
    SLOT(object, offset) = Py_NewRef(value);
    Py_XDECREF(before);
}

/* The slot of an object, or NULL with an exception if it was never set. */
static PyObject *slot_of(PyObject *object, Py_ssize_t offset) {
    PyObject *value = SLOT(object, offset);
    if (!value) PyErr_Format(PyExc_AttributeError, "an object of %s lacks an attribute", Py_TYPE(object)->tp_name);
    return value;
}

static int is_pending(PyObject *x) { return Py_TYPE(x) == python.pending; }
static int is_known(PyObject *node) { return SLOT(node, at.known) != Py_None; }

/* Whether an array has these pending elements, so that they may be read later. */
static int is_needed(PyObject *node) {
    PyObject *holder = SLOT(node, at.holder);
    if (!holder || !PyWeakref_Check(holder)) return 0;
#if PY_VERSION_HEX >= 0x030d0000
    PyObject *absent = NULL;
    const int is_there = PyWeakref_GetRef(holder, &absent);
    Py_XDECREF(absent);
    return is_there == 1;
#else
    return PyWeakref_GET_OBJECT(holder) != Py_None;
#endif
}

/* Collection. ------------------------------------------------------------------------------------------------------ */

/* A part of an expression: pending elements that it computes, or an operand of it. */
typedef struct {
    PyObject *object; /* what operations refer to; the expression's root keeps it alive */
    PyObject *value;  /* of an operand the array or the number; NULL if the elements are pending */
    int place;        /* the index among the results, or ~ that among the operands */
    int uses;         /* how often operations of the expression refer to it */
} Part;

enum { FEW_PARTS = 64 };

typedef struct {
    Part *parts;
    int *table; /* for each hash of an object ~ the index of a part, or 0; twice as many as parts */
    int *results, *operands; /* indices of parts: each result after those that it depends on */
    int count, result_count, operand_count, capacity;
    Part few[FEW_PARTS];
    int few_numbers[4 * FEW_PARTS];
} Expression;

static void begin_expression(Expression *e) {
    e->count = e->result_count = e->operand_count = 0;
    e->capacity = FEW_PARTS;
    e->parts = e->few;
    e->table = e->few_numbers;
    e->results = e->table + 2 * FEW_PARTS;
    e->operands = e->results + FEW_PARTS;
    memset(e->table, 0, 2 * FEW_PARTS * sizeof *e->table);
}

static void end_expression(Expression *e) {
    if (e->parts != e->few) {
        free(e->parts);
        free(e->table);
    }
}

/* The place of an object in the table: where it is, or where it may be put. */
static int *place_of(const Expression *e, PyObject *object) {
    const size_t mask = 2 * (size_t)e->capacity - 1;
    size_t i = (size_t)((uintptr_t)object >> 4) * 0x9E3779B1u;
    for (i = (i ^ i >> 15) & mask; e->table[i] && e->parts[~e->table[i]].object != object; i = (i + 1) & mask) {}
    return &e->table[i];
}

static int grow(Expression *e) {
    const int capacity = 2 * e->capacity;
    Part *parts = malloc(capacity * sizeof *parts);
    int *numbers = calloc(4 * (size_t)capacity, sizeof *numbers);
    if (!parts || !numbers) {
        free(parts);
        free(numbers);
        PyErr_NoMemory();
        return -1;
    }
    memcpy(parts, e->parts, e->count * sizeof *parts);
    memcpy(numbers + 2 * capacity, e->results, e->result_count * sizeof *numbers);
    memcpy(numbers + 3 * capacity, e->operands, e->operand_count * sizeof *numbers);
    end_expression(e);
    e->capacity = capacity;
    e->parts = parts;
    e->table = numbers;
    e->results = numbers + 2 * capacity;
    e->operands = numbers + 3 * capacity;
    for (int i = 0; i < e->count; i++) *place_of(e, parts[i].object) = ~i;
    return 0;
}

/* Add a part; return its index, or -1 with an exception. */
static int add_part(Expression *e, PyObject *object, PyObject *value) {
    if (e->count == e->capacity && grow(e)) return -1;
    *place_of(e, object) = ~e->count;
    e->parts[e->count] = (Part){.object = object, .value = value};
    return e->count++;
}

/* Add pending elements, after all that they depend on, and then the operands of their operation. */
static int collect(Expression *e, PyObject *node) {
    const int part = add_part(e, node, NULL);
    PyObject *operands = slot_of(node, at.operands);
    if (part < 0 || !operands) return -1;
    const Py_ssize_t count = PyTuple_GET_SIZE(operands);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = PyTuple_GET_ITEM(operands, i);
        if (is_pending(x) && !is_known(x) && !*place_of(e, x) && collect(e, x)) return -1;
    }
    e->parts[part].place = e->result_count;
    e->results[e->result_count++] = part;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = PyTuple_GET_ITEM(operands, i);
        int k = ~*place_of(e, x);
        if (k < 0) {
            k = add_part(e, x, is_pending(x) ? SLOT(x, at.known) : x);
            if (k < 0) return -1;
            e->parts[k].place = ~e->operand_count;
            e->operands[e->operand_count++] = k;
        }
        e->parts[k].uses++;
    }
    return 0;
}

static Part *result_of(const Expression *e, int k) { return &e->parts[e->results[k]]; }
static Part *operand_of(const Expression *e, int k) { return &e->parts[e->operands[k]]; }

/* The bytes of the elements of an array that may repeat some by broadcasting; 0 for other values. */
static npy_intp bytes_of(PyObject *x) {
    if (!PyArray_Check(x)) return 0;
    PyArrayObject *array = (PyArrayObject *)x;
    if (PyArray_IS_C_CONTIGUOUS(array)) return PyArray_NBYTES(array);
    npy_intp bytes = 0;
    for (int axis = 0; axis < PyArray_NDIM(array); axis++)
        if (PyArray_STRIDE(array, axis)) bytes = (bytes ? bytes : PyArray_ITEMSIZE(array)) * PyArray_DIM(array, axis);
    return bytes;
}

/* Whether an operation on an array has a result in row-major order, as results of expressions are. */
static int is_row_major(PyArrayObject *x) {
    npy_intp last = NPY_MAX_INTP;
    for (int axis = 0; axis < PyArray_NDIM(x); axis++) {
        const npy_intp stride = PyArray_STRIDE(x, axis);
        if (!stride || PyArray_DIM(x, axis) <= 1) continue;
        if (stride > last) return 0;
        last = stride;
    }
    return 1;
}

/* Creation. -------------------------------------------------------------------------------------------------------- */

static PyObject *made(PyTypeObject *type) { return type->tp_alloc(type, 0); }

/* The shape, dtype and weak type of an array; a new reference. */
static PyObject *kind_of(PyObject *array) {
    PyObject *value = slot_of(array, at.host_value), *weak = slot_of(array, at.weak_type), *shape, *dtype;
    if (!value || !weak) return NULL;
    if (Py_TYPE(value) == python.absent) {
        shape = Py_NewRef(SLOT(value, at.absent_shape));
        dtype = SLOT(value, at.absent_dtype);
    } else if (PyArray_Check(value)) {
        shape = PyArray_IntTupleFromIntp(PyArray_NDIM((PyArrayObject *)value), PyArray_DIMS((PyArrayObject *)value));
        dtype = (PyObject *)PyArray_DESCR((PyArrayObject *)value);
    } else {
        shape = PyObject_GetAttr(value, name_shape);
        if (!shape || !PyArray_IsScalar(value, Generic)) {
            Py_XDECREF(shape);
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "expected the elements of an array");
        }
        PyArray_Descr *descr = PyArray_DescrFromScalar(value);
        PyObject *kind = descr ? PyTuple_Pack(3, shape, (PyObject *)descr, weak) : NULL;
        Py_XDECREF(descr);
        Py_DECREF(shape);
        return kind;
    }
    PyObject *kind = shape ? PyTuple_Pack(3, shape, dtype, weak) : NULL;
    Py_XDECREF(shape);
    return kind;
}

/* Whether the dtypes of the arrays among operands hold the integers among them. */
static int are_held(PyObject *operands) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); i++) {
        PyObject *x = PyTuple_GET_ITEM(operands, i);
        if (!PyLong_CheckExact(x)) continue;
        int overflow;
        const long value = PyLong_AsLongAndOverflow(x, &overflow);
        if (!overflow && 0 <= value && value < 128) continue;
        PyObject *answer = PyObject_CallOneArg(python.are_held, operands);
        const int held = answer ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
        return held;
    }
    return 1;
}

/* What pending elements refer to for an operand of an operation; a new reference. None, if the operation has to be
   computed now, for the operand's elements are on a device; NotImplemented, if they are not in row-major order. */
static PyObject *referred(PyObject *x, PyObject *operation) {
    PyObject *shape = SLOT(SLOT(operation, at.result), at.type_shape);
    if (Py_TYPE(x) != python.array) return Py_NewRef(x);
    PyObject *value = SLOT(x, at.host_value);
    if (Py_TYPE(value) == python.absent) {
        PyObject *node = SLOT(value, at.pending);
        if (!is_pending(node)) Py_RETURN_NONE;
        if (!is_known(node)) {
            const int is_alike = PyObject_RichCompareBool(SLOT(node, at.shape), shape, Py_EQ);
            if (is_alike < 0) return NULL;
            if (is_alike) return Py_NewRef(node);
            value = PyObject_CallMethodNoArgs(node, name_read); /* an expression of another shape is not part of this one */
            if (!value) return NULL;
        } else {
            if (SLOT(operation, at.is_identity) == Py_True) Py_RETURN_NONE; /* the elements are there already */
            value = Py_NewRef(SLOT(node, at.known));
        }
    } else {
        Py_INCREF(value);
    }
    if (PyArray_Check(value) && !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)value) && !is_row_major((PyArrayObject *)value)) {
        Py_DECREF(value);
        Py_RETURN_NOTIMPLEMENTED;
    }
    return value;
}

/* Pending elements, what stands for them in an array, and the array; a new reference to the last. */
static PyObject *pending_array(PyObject *operation, PyObject *params, PyObject *operands) {
    PyObject *aval = SLOT(operation, at.result);
    PyObject *node = made(python.pending), *absent = made(python.absent), *array = made(python.array);
    PyObject *holder = node && absent && array ? PyWeakref_NewRef(absent, NULL) : NULL;
    if (!holder) {
        Py_XDECREF(node);
        Py_XDECREF(absent);
        Py_XDECREF(array);
        return NULL;
    }
    SLOT(node, at.shape) = Py_NewRef(SLOT(aval, at.type_shape));
    SLOT(node, at.dtype) = Py_NewRef(SLOT(aval, at.type_dtype));
    SLOT(node, at.known) = Py_NewRef(Py_None);
    SLOT(node, at.passed) = Py_NewRef(Py_False);
    SLOT(node, at.operation) = Py_NewRef(operation);
    SLOT(node, at.params) = Py_NewRef(params);
    SLOT(node, at.operands) = Py_NewRef(operands);
    SLOT(node, at.holder) = holder;
    SLOT(absent, at.aval) = Py_NewRef(aval);
    SLOT(absent, at.absent_shape) = Py_NewRef(SLOT(aval, at.type_shape));
    SLOT(absent, at.absent_dtype) = Py_NewRef(SLOT(aval, at.type_dtype));
    SLOT(absent, at.pending) = node;
    SLOT(array, at.host_value) = absent;
    SLOT(array, at.weak_type) = Py_NewRef(SLOT(aval, at.type_weak_type));
    return array;
}

/* Whether pending elements have to be computed now: their expression is long, or keeps much memory. */
static int is_due(PyObject *node) {
    Expression e;
    begin_expression(&e);
    int due = collect(&e, node) ? -1 : e.result_count > python.most_steps;
    if (!due) {
        npy_intp bytes = 0, arrays = 0;
        for (int i = 0; i < e.operand_count; i++) {
            PyObject *x = operand_of(&e, i)->value;
            bytes += bytes_of(x);
            arrays += PyArray_Check(x);
        }
        const npy_intp most = PyLong_AsSsize_t(SLOT(SLOT(node, at.operation), at.most_kept));
        due = arrays > 1 && bytes > most;
    }
    end_expression(&e);
    return due;
}

/* The operation on some operands, None if its result cannot be pending, or NULL; a new reference. */
static PyObject *operation_of(PyObject *primitive, PyObject *operands, PyObject *params) {
    const Py_ssize_t count = PyTuple_GET_SIZE(operands);
    PyObject *kinds = PyTuple_New(count), *items = NULL, *operation = NULL;
    int has_integers = 0;
    if (!kinds) return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = PyTuple_GET_ITEM(operands, i);
        PyObject *kind = Py_TYPE(x) == python.array ? kind_of(x) : Py_NewRef((PyObject *)Py_TYPE(x));
        if (!kind) goto end;
        PyTuple_SET_ITEM(kinds, i, kind);
        has_integers |= PyLong_CheckExact(x);
    }
    if (PyDict_GET_SIZE(params)) {
        PyObject *list = PyDict_Items(params);
        items = list ? PyList_AsTuple(list) : NULL;
        Py_XDECREF(list);
    } else {
        items = Py_NewRef(no_operands);
    }
    if (items) operation = PyObject_CallFunctionObjArgs(python.operation, primitive, items, kinds, NULL);
    if (operation && operation != Py_None && has_integers) {
        const int held = are_held(operands);
        if (held < 1) Py_CLEAR(operation);
        if (!held) operation = Py_NewRef(Py_None);
    }
end:
    Py_XDECREF(items);
    Py_DECREF(kinds);
    return operation;
}

PyDoc_STRVAR(deferred_doc, "deferred(primitive, operands, params, /)\n--\n\n"
    "Return the result of an elementwise operation, with pending elements; None if it must be evaluated now, and\n"
    "NotImplemented if so because the elements of an operand are not in row-major order.");

static PyObject *deferred(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !python.array || !PyDict_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "expected an operation, operands, and a dict of parameters");
    PyObject *given = PySequence_Tuple(args[1]), *array = NULL, *operands = NULL;
    PyObject *operation = given ? operation_of(args[0], given, args[2]) : NULL;
    if (!operation || operation == Py_None) goto end;
    if (!(operands = PyTuple_New(PyTuple_GET_SIZE(given)))) goto end;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); i++) {
        PyObject *x = referred(PyTuple_GET_ITEM(given, i), operation);
        if (!x) goto end;
        PyTuple_SET_ITEM(operands, i, x);
        if (x == Py_None || x == Py_NotImplemented) {
            array = Py_NewRef(x);
            goto end;
        }
    }
    array = pending_array(operation, args[2], operands);
    Py_CLEAR(operands); /* memory that nobody else has receives the result */
    Py_CLEAR(given);
    PyObject *node = array ? SLOT(SLOT(array, at.host_value), at.pending) : NULL;
    const int due = node ? is_due(node) : 0;
    if (due > 0) {
        PyObject *elements = PyObject_CallMethodNoArgs(node, name_read);
        if (!elements) Py_CLEAR(array);
        Py_XDECREF(elements);
    } else if (due < 0) {
        Py_CLEAR(array);
    }
end:
    if (operation == Py_None && !array) array = Py_NewRef(Py_None);
    Py_XDECREF(operation);
    Py_XDECREF(operands);
    Py_XDECREF(given);
    return array;
}

/* Evaluation. ------------------------------------------------------------------------------------------------------ */

enum { NUMBER_BYTES = 16 };

/* Write a Python number as an element of a dtype. */
static int write_number(char *memory, PyObject *number, PyArray_Descr *dtype) {
    if (dtype->type_num != NPY_FLOAT && dtype->type_num != NPY_DOUBLE) {
        PyArrayObject *array = (PyArrayObject *)PyArray_FromAny(number, (PyArray_Descr *)Py_NewRef(dtype), 0, 0, NPY_ARRAY_DEFAULT, NULL);
        if (!array) return -1;
        memcpy(memory, PyArray_DATA(array), PyArray_ITEMSIZE(array));
        Py_DECREF(array);
        return 0;
    }
    const double value = PyFloat_AsDouble(number);
    if (value == -1 && PyErr_Occurred()) return -1;
    if (dtype->type_num == NPY_FLOAT) {
        fenv_t environment;
        feholdexcept(&environment); /* it may be too large: then it is infinite, without a warning */
        *(float *)memory = (float)value;
        fesetenv(&environment);
    } else {
        *(double *)memory = value;
    }
    return 0;
}

static int index_in(PyObject *tuple, Py_ssize_t i, Py_ssize_t end) {
    const Py_ssize_t k = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
    if (k >= 0 && k < end) return (int)k;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "a plan has no such value");
    return -1;
}

/* Run a plan on operands: write its results to `outs`, and the reductions to a new array, `pieces`. */
static int run_plan(PyObject *plan, PyObject **operands, Py_ssize_t operand_count, PyObject **outs, Py_ssize_t out_count, PyObject **pieces) {
    PyObject *slots = SLOT(plan, at.slots), *arrays = SLOT(plan, at.arrays), *numbers = SLOT(plan, at.numbers);
    PyObject *written = SLOT(plan, at.outs), *steps = SLOT(plan, at.steps), *of_pieces = SLOT(plan, at.pieces);
    const npy_intp block = PyLong_AsSsize_t(SLOT(plan, at.block));
    const Py_ssize_t count = PyList_GET_SIZE(slots), array_count = PyList_GET_SIZE(arrays), number_count = PyList_GET_SIZE(numbers);
    Job job;
    npy_intp itemsize = 1;
    int failed = begin_job(&job, SLOT(plan, at.sizes), count, PyList_GET_SIZE(steps), PyLong_AsLong(SLOT(plan, at.helpers)));
    PyObject **views = calloc(array_count + 1, sizeof *views);
    char *of_numbers = malloc((number_count + 1) * NUMBER_BYTES);
    if (failed || !views || !of_numbers || PyList_GET_SIZE(written) != out_count) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        failed = -1;
        goto end;
    }
    failed = -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = PyList_GET_ITEM(slots, i);
        if (x != Py_None && read_value(x, &job, i, &itemsize)) goto end;
    }
    for (Py_ssize_t i = 0; i < array_count; i++) {
        PyObject *item = PyList_GET_ITEM(arrays, i), *view = PyTuple_GET_ITEM(item, 2);
        const int slot = index_in(item, 0, count), k = index_in(item, 1, operand_count);
        if (slot < 0 || k < 0) goto end;
        PyObject *x = operands[k];
        if (view != Py_None && !(x = views[i] = PyObject_CallFunctionObjArgs(python.viewed, plan, x, view, NULL))) goto end;
        if (read_value(x, &job, slot, &itemsize)) goto end;
    }
    for (Py_ssize_t i = 0; i < number_count; i++) {
        PyObject *item = PyList_GET_ITEM(numbers, i);
        const int slot = index_in(item, 0, count), k = index_in(item, 1, operand_count);
        PyArray_Descr *dtype = (PyArray_Descr *)PyTuple_GET_ITEM(item, 2);
        char *memory = of_numbers + i * NUMBER_BYTES;
        if (slot < 0 || k < 0 || write_number(memory, operands[k], dtype)) goto end;
        job.values[slot] = (Value){.data = memory};
        if (PyDataType_ELSIZE(dtype) > itemsize) itemsize = PyDataType_ELSIZE(dtype);
    }
    for (Py_ssize_t i = 0; i < out_count; i++) {
        const Py_ssize_t slot = PyLong_AsSsize_t(PyList_GET_ITEM(written, i));
        if (slot < 0 || slot >= count || read_value(outs[i], &job, slot, &itemsize)) goto end;
    }
    if (of_pieces != Py_None) {
        PyObject *dtype, *shape;
        Py_ssize_t slot, axis, piece;
        PyArray_Dims sizes = {NULL, 0};
        if (!PyArg_ParseTuple(of_pieces, "nOOnn", &slot, &dtype, &shape, &axis, &piece) || slot >= count) goto end;
        if (!PyArray_IntpConverter(shape, &sizes)) goto end;
        *pieces = PyArray_SimpleNewFromDescr(sizes.len, sizes.ptr, (PyArray_Descr *)Py_NewRef(dtype));
        PyDimMem_FREE(sizes.ptr);
        if (!*pieces) goto end;
        PyObject *reduced = piece ? Py_BuildValue("Onn", *pieces, axis, piece) : Py_NewRef(*pieces);
        if (!reduced || read_value(reduced, &job, slot, &itemsize)) {
            Py_XDECREF(reduced);
            goto end;
        }
        Py_DECREF(reduced);
    }
    failed = read_steps(steps, &job) ? -1 : run_job(&job, block, itemsize);
end:
    end_job(&job);
    for (Py_ssize_t i = 0; views && i < array_count; i++) Py_XDECREF(views[i]);
    free(views);
    free(of_numbers);
    if (failed) Py_CLEAR(*pieces);
    return failed;
}

PyDoc_STRVAR(run_plan_doc, "run_plan(plan, operands, outs, /)\n--\n\n"
    "Evaluate an expression by its plan, as the method ``run`` of plans says.");

static PyObject *run_plan_of(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !python.array) return PyErr_Format(PyExc_TypeError, "expected a plan, operands and results");
    PyObject *operands = PySequence_Tuple(args[1]), *outs = PySequence_Tuple(args[2]), *pieces = NULL;
    int failed = !operands || !outs;
    if (!failed)
        failed = run_plan(args[0], ((PyTupleObject *)operands)->ob_item, PyTuple_GET_SIZE(operands),
                          ((PyTupleObject *)outs)->ob_item, PyTuple_GET_SIZE(outs), &pieces);
    Py_XDECREF(operands);
    Py_XDECREF(outs);
    if (failed) return NULL;
    return pieces ? pieces : Py_NewRef(Py_None);
}

/* What an evaluation knows of each result. */
typedef struct {
    int is_slow, is_kept;
    npy_intp cost;  /* how many operations there are to compute it from elements that are kept; 0 if it is kept itself */
    npy_intp bytes; /* of the arrays that it depends on */
} About;

/* Whether pending elements are more than four times the bytes of all arrays that they depend on. */
static int is_spread_from(PyObject *node, npy_intp size, npy_intp bytes) {
    return 4 * bytes < size * PyDataType_ELSIZE((PyArray_Descr *)SLOT(node, at.dtype));
}

/* Find for each result whether its operation is slow, and the bytes that it depends on. */
static int look_at(const Expression *e, About *about) {
    const int words = (e->operand_count + 63) / 64, count = e->result_count;
    uint64_t few[FEW_PARTS], *masks = few;
    if (words * count > FEW_PARTS && !(masks = malloc(words * count * sizeof *masks))) {
        PyErr_NoMemory();
        return -1;
    }
    memset(masks, 0, words * count * sizeof *masks);
    for (int k = 0; k < count; k++) {
        PyObject *node = result_of(e, k)->object, *given = SLOT(node, at.operands);
        uint64_t *mask = masks + k * words;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); i++) {
            const int place = e->parts[~*place_of(e, PyTuple_GET_ITEM(given, i))].place;
            for (int w = 0; place >= 0 && w < words; w++) mask[w] |= masks[place * words + w];
            if (place < 0) mask[~place / 64] |= (uint64_t)1 << (~place % 64);
        }
        about[k] = (About){.is_slow = SLOT(SLOT(node, at.operation), at.is_slow) == Py_True};
        for (int i = 0; i < e->operand_count; i++)
            if (mask[i / 64] >> (i % 64) & 1) about[k].bytes += bytes_of(operand_of(e, i)->value);
    }
    if (masks != few) free(masks);
    return 0;
}

/* Whether a reduction of the last result keeps none: they stay pending. See `_are_passed`. */
static int are_passed(const Expression *e, const About *about, npy_intp size) {
    const int count = e->result_count;
    const int spread = is_spread_from(result_of(e, count - 1)->object, size, about[count - 1].bytes);
    if (count > (spread ? python.most_spread : python.most_passed)) return 0;
    for (int k = 0; k < count; k++)
        if (about[k].is_slow || (!spread && SLOT(result_of(e, k)->object, at.passed) == Py_True)) return 0;
    return 1;
}

/* Whether another expression, or an array, refers to pending elements. */
static int is_used_elsewhere(const Part *part) { return Py_REFCNT(part->object) > part->uses; }

/* Decide which results stay once they are computed. See `_kept`. */
static void decide(const Expression *e, About *about, npy_intp size) {
    for (int k = 0; k < e->result_count; k++) {
        const Part *part = result_of(e, k);
        PyObject *node = part->object, *given = SLOT(node, at.operands);
        npy_intp cost = about[k].is_slow ? python.most_spread + 1 : 1;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given); i++) {
            const int place = e->parts[~*place_of(e, PyTuple_GET_ITEM(given, i))].place;
            if (place >= 0) cost += about[place].cost;
        }
        if (cost > 1 << 20) cost = 1 << 20;
        const int spread = is_spread_from(node, size, about[k].bytes), needed = is_needed(node);
        const npy_intp most = spread ? python.most_spread : python.most_passed;
        const int stays = needed && (cost > most || (!spread && SLOT(node, at.passed) == Py_True));
        about[k].is_kept = k == e->result_count - 1 || stays || (about[k].is_slow && is_used_elsewhere(part));
        if (!about[k].is_kept) {
            about[k].cost = cost;
            set_slot(node, at.passed, needed ? Py_True : Py_False);
        }
    }
}

/* The operations and their operands; of each operand the strides, or None if its elements are side by side. */
static PyObject *structure_of(const Expression *e) {
    PyObject *structure = PyTuple_New(e->result_count);
    for (int k = 0; structure && k < e->result_count; k++) {
        PyObject *node = result_of(e, k)->object, *given = SLOT(node, at.operands), *step = NULL;
        const Py_ssize_t count = PyTuple_GET_SIZE(given);
        PyObject *places = PyTuple_New(count);
        for (Py_ssize_t i = 0; places && i < count; i++) {
            PyObject *place = PyLong_FromLong(e->parts[~*place_of(e, PyTuple_GET_ITEM(given, i))].place);
            if (place) PyTuple_SET_ITEM(places, i, place);
            else Py_CLEAR(places);
        }
        if (places) step = PyTuple_Pack(2, SLOT(node, at.operation), places);
        Py_XDECREF(places);
        if (step) PyTuple_SET_ITEM(structure, k, step);
        else Py_CLEAR(structure);
    }
    return structure;
}

static PyObject *strides_of(const Expression *e) {
    PyObject *strides = PyTuple_New(e->operand_count);
    for (int i = 0; strides && i < e->operand_count; i++) {
        PyObject *x = operand_of(e, i)->value, *own = Py_NewRef(Py_None);
        if (PyArray_Check(x) && !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x))
            Py_SETREF(own, PyArray_IntTupleFromIntp(PyArray_NDIM((PyArrayObject *)x), PyArray_STRIDES((PyArrayObject *)x)));
        if (own) PyTuple_SET_ITEM(strides, i, own);
        else Py_CLEAR(strides);
    }
    return strides;
}

/* The plan of an expression, None if the module lacks loops for it, or NULL; a new reference. */
static PyObject *plan_of(const Expression *e, const About *about, PyObject *axes, PyObject *kind) {
    PyObject *structure = structure_of(e), *strides = strides_of(e), *kept = NULL, *plan = NULL;
    Py_ssize_t count = 0;
    for (int k = 0; k < e->result_count; k++) count += about[k].is_kept;
    if (structure && strides && (kept = PyTuple_New(count))) {
        for (int k = 0, i = 0; k < e->result_count; k++)
            if (about[k].is_kept) PyTuple_SET_ITEM(kept, i++, PyLong_FromLong(k)); /* most are kept by Python */
        plan = PyObject_CallFunctionObjArgs(python.plan, structure, strides, kept, axes, kind, NULL);
    }
    Py_XDECREF(structure);
    Py_XDECREF(strides);
    Py_XDECREF(kept);
    return plan;
}

/* New memory for elements, aligned as compiled programs want it, unless the user has a handler. */
static PyObject *new_elements(PyObject *node) {
    PyArray_Descr *dtype = (PyArray_Descr *)SLOT(node, at.dtype);
    PyArray_Dims sizes = {NULL, 0};
    PyObject *handler = aligned_handler(), *present = PyDataMem_GetHandler(), *before = NULL, *out = NULL;
    if (!handler || !present || !PyArray_IntpConverter(SLOT(node, at.shape), &sizes)) {
        Py_XDECREF(present);
        return NULL;
    }
    const int is_usual = present == PyDataMem_DefaultHandler;
    if (!is_usual || (before = PyDataMem_SetHandler(handler))) {
        out = PyArray_SimpleNewFromDescr(sizes.len, sizes.ptr, (PyArray_Descr *)Py_NewRef(dtype));
        if (is_usual) {
            PyObject *type, *value, *traceback;
            PyErr_Fetch(&type, &value, &traceback);
            Py_XDECREF(PyDataMem_SetHandler(present));
            PyErr_Restore(type, value, traceback);
        }
    }
    Py_XDECREF(before);
    Py_DECREF(present);
    PyDimMem_FREE(sizes.ptr);
    return out;
}

/* Memory for the last result: that of an operand that nobody else has, or new. */
static PyObject *released(const Expression *e, const About *about, PyObject *plan) {
    PyObject *root = result_of(e, e->result_count - 1)->object, *may_be = SLOT(plan, at.free);
    int are_computed_again = 0; /* another expression refers to elements that do not stay */
    for (int k = 0; k < e->result_count; k++) are_computed_again |= !about[k].is_kept && is_used_elsewhere(result_of(e, k));
    for (Py_ssize_t i = 0; !are_computed_again && i < PyList_GET_SIZE(may_be); i++) {
        const Py_ssize_t k = PyLong_AsSsize_t(PyList_GET_ITEM(may_be, i));
        if (k < 0 || k >= e->operand_count) continue;
        const Part *part = operand_of(e, (int)k);
        PyArrayObject *x = (PyArrayObject *)part->value;
        if (part->object != part->value || !PyArray_CheckExact(part->value) || Py_REFCNT(x) != part->uses) continue;
        if (PyArray_BASE(x) || !PyArray_IS_C_CONTIGUOUS(x) || !PyArray_EquivTypes(PyArray_DESCR(x), (PyArray_Descr *)SLOT(root, at.dtype)))
            continue;
        PyObject *shape = PyArray_IntTupleFromIntp(PyArray_NDIM(x), PyArray_DIMS(x));
        const int fits = shape ? PyObject_RichCompareBool(shape, SLOT(root, at.shape), Py_EQ) : -1;
        Py_XDECREF(shape);
        if (fits) return fits < 0 ? NULL : Py_NewRef(part->value);
    }
    return new_elements(root);
}

/* Compute an expression by its plan, and tell its results; see `evaluate`. `none_stays` if a reduction keeps none. */
static int compute(const Expression *e, const About *about, PyObject *plan, int none_stays, PyObject **pieces) {
    const int count = e->result_count;
    Py_ssize_t out_count = 0;
    PyObject **outs = calloc(count, sizeof *outs), **values = malloc((e->operand_count + 1) * sizeof *values);
    int failed = !outs || !values;
    if (failed) PyErr_NoMemory();
    if (!failed && !none_stays) {
        PyObject *nothing = PyObject_CallNoArgs(python.memory_needed);
        failed = !nothing;
        Py_XDECREF(nothing);
    }
    for (int k = 0; !failed && k < count; k++) {
        if (!about[k].is_kept) continue;
        outs[out_count] = k < count - 1 ? new_elements(result_of(e, k)->object) : released(e, about, plan);
        failed = !outs[out_count++];
    }
    if (!failed) {
        for (int i = 0; i < e->operand_count; i++) values[i] = operand_of(e, i)->value;
        failed = run_plan(plan, values, e->operand_count, outs, out_count, pieces);
    }
    for (int k = 0; !failed && none_stays && k < count; k++) {
        PyObject *node = result_of(e, k)->object;
        set_slot(node, at.passed, is_needed(node) ? Py_True : Py_False);
    }
    for (int k = 0, i = 0; !failed && k < count; k++) {
        if (!about[k].is_kept) continue;
        PyObject *node = result_of(e, k)->object;
        set_slot(node, at.known, outs[i++]); /* before the operands go: another thread reads the operands first */
        set_slot(node, at.operands, no_operands);
    }
    for (int k = 0; outs && k < count; k++) Py_XDECREF(outs[k]);
    free(outs);
    free(values);
    return failed ? -1 : 0;
}

PyDoc_STRVAR(evaluate_doc, "evaluate(root, axes, kind, /)\n--\n\n"
    "Compute pending elements, and those that they depend on and that an array has.\n\n"
    "Args:\n"
    "  root: the pending elements.\n"
    "  axes, kind: those of a reduction of them, as in ``native.planned``; None and \"\" otherwise.\n\n"
    "Returns:\n"
    "  Whether the module has loops for all operations, without which nothing is computed; for a reduction, the\n"
    "  reductions of pieces.\n\n"
    "Raises:\n"
    "  MemoryError: there is no memory.");

static PyObject *evaluate(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !python.array || !is_pending(args[0]) || is_known(args[0]))
        return PyErr_Format(PyExc_TypeError, "expected pending elements, axes and a kind of reduction");
    PyObject *root = args[0], *shape = SLOT(root, at.shape), *plan = NULL, *pieces = NULL, *answer = NULL;
    Expression e;
    About few[FEW_PARTS], *about = few;
    begin_expression(&e);
    if (collect(&e, root)) goto end;
    if (e.result_count > FEW_PARTS && !(about = malloc(e.result_count * sizeof *about))) {
        PyErr_NoMemory();
        goto end;
    }
    npy_intp size = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++) size *= PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
    if (look_at(&e, about)) goto end;
    const int none_stays = args[1] != Py_None && are_passed(&e, about, size);
    if (!none_stays) decide(&e, about, size);
    if (!(plan = plan_of(&e, about, args[1], args[2]))) goto end;
    if (plan == Py_None) answer = Py_NewRef(Py_False);
    else if (!compute(&e, about, plan, none_stays, &pieces)) answer = pieces ? pieces : Py_NewRef(Py_True);
end:
    Py_XDECREF(plan);
    if (about != few) free(about);
    end_expression(&e);
    return answer;
}

/* Classes. --------------------------------------------------------------------------------------------------------- */

/* Find where instances of a class have a slot. */
static int find_slot(PyObject *type, const char *name, Py_ssize_t *offset) {
    PyObject *found = PyObject_GetAttrString(type, name);
    if (!found) return -1;
    PyMemberDef *member = Py_IS_TYPE(found, &PyMemberDescr_Type) ? ((PyMemberDescrObject *)found)->d_member : NULL;
    if (member && member->type == T_OBJECT_EX) *offset = member->offset;
    else PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, name);
    Py_DECREF(found);
    return PyErr_Occurred() ? -1 : 0;
}

PyDoc_STRVAR(pend_doc, "pend(classes, functions, bounds, other_cores, /)\n--\n\n"
    "Set what :func:`deferred` and :func:`evaluate` know of Python's.\n\n"
    "Args:\n"
    "  classes: ``ArrayImpl``, ``Absent``, ``Pending``, ``Operation``, ``ShapedArray`` and ``Plan``.\n"
    "  functions: ``_operation``, ``_are_integers_held``, ``_plan``, ``native.viewed`` and ``runtime.memory_needed``.\n"
    "  bounds: ``MOST_STEPS``, ``MOST_PASSED`` and ``MOST_SPREAD``.\n"
    "  other_cores: how many more cores this process may use.");

static PyObject *pend(PyObject *module, PyObject *args) {
    PyObject *array, *absent, *pending, *operation, *aval, *plan, *of_operation, *held, *of_plan, *viewed, *needed;
    Py_ssize_t steps, passed, spread;
    if (!PyArg_ParseTuple(args, "(OOOOOO)(OOOOO)(nnn)l", &array, &absent, &pending, &operation, &aval, &plan,
                          &of_operation, &held, &of_plan, &viewed, &needed, &steps, &passed, &spread, &other_cores))
        return NULL;
    const struct {
        PyObject *type;
        const char *name;
        Py_ssize_t *offset;
    } slots[] = {
        {array, "_host_value", &at.host_value}, {array, "weak_type", &at.weak_type},
        {absent, "aval", &at.aval}, {absent, "dtype", &at.absent_dtype}, {absent, "pending", &at.pending},
        {absent, "shape", &at.absent_shape},
        {pending, "dtype", &at.dtype}, {pending, "holder", &at.holder}, {pending, "known", &at.known},
        {pending, "operands", &at.operands}, {pending, "operation", &at.operation}, {pending, "params", &at.params},
        {pending, "passed", &at.passed}, {pending, "shape", &at.shape},
        {operation, "aval", &at.result}, {operation, "is_slow", &at.is_slow}, {operation, "is_identity", &at.is_identity},
        {operation, "most_kept", &at.most_kept},
        {aval, "shape", &at.type_shape}, {aval, "dtype", &at.type_dtype}, {aval, "weak_type", &at.type_weak_type},
        {plan, "arrays", &at.arrays}, {plan, "block", &at.block}, {plan, "free", &at.free}, {plan, "helpers", &at.helpers},
        {plan, "numbers", &at.numbers}, {plan, "outs", &at.outs}, {plan, "pieces", &at.pieces}, {plan, "shape", &at.sizes},
        {plan, "slots", &at.slots}, {plan, "steps", &at.steps},
    };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (find_slot(slots[i].type, slots[i].name, slots[i].offset) < 0) return NULL;
    if (!no_operands && !(no_operands = PyTuple_New(0))) return NULL;
    if (!name_shape && !(name_shape = PyUnicode_InternFromString("shape"))) return NULL;
    if (!name_read && !(name_read = PyUnicode_InternFromString("read"))) return NULL;
    python.absent = (PyTypeObject *)Py_NewRef(absent);
    python.pending = (PyTypeObject *)Py_NewRef(pending);
    python.operation = Py_NewRef(of_operation);
    python.are_held = Py_NewRef(held);
    python.plan = Py_NewRef(of_plan);
    python.viewed = Py_NewRef(viewed);
    python.memory_needed = Py_NewRef(needed);
    python.most_steps = steps;
    python.most_passed = passed;
    python.most_spread = spread;
    python.array = (PyTypeObject *)Py_NewRef(array); /* the last: the functions ask whether it is there */
    Py_RETURN_NONE;
}

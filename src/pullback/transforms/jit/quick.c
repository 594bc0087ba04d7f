/* The call of a function under ``jit`` whose program is in the cache, without a line of Python.

   It does what the fast path of ``JitFunction.__call__`` does, for the most frequent calls: it makes the key, finds the
   compiled program, gathers the buffers of the arguments, runs the program and wraps the results. Every other call, and
   every call that the module does not understand, is left to ``JitFunction.__call__`` before anything has happened.

   Attributes that Python's classes keep in slots are read and written where they are. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <structmember.h>

#if defined(Py_GIL_DISABLED) || defined(PYPY_VERSION)
#error "the module relies on the lock of CPython, and on its objects"
#endif

enum { GARBAGE_EVERY = 1024 }; /* calls: one of so many frees the objects that the runtime has set aside */
enum { NOTED_BITS = 10, NOTED = 1 << NOTED_BITS };

/* What a step of a call says: it failed with an exception, it leaves the call to Python, or it is done. */
typedef enum { FAILED = -1, LEFT = 0, DONE = 1 } Outcome;

/* The base class of functions under ``jit``. */
typedef struct {
    PyObject_HEAD
    PyObject *compiled; /* the programs, a dict */
    PyObject *flatten;  /* flattens a tree; None until a call had one */
    char plain;         /* whether no argument is static */
    char nested;        /* whether the last arguments were more than arrays */
} Function;

/* Objects of Python, from ``configure``. */
static PyObject *python_call, *state, *eval_trace, *config, *numbers, *copiers, *operand, *signature_of, *explained;
static PyObject *fresh;
static PyObject *array_type, *committed_type, *signature_type, *aval_type, *entry_type;
static PyObject *deleted_type, *numpy_array, *numpy_scalar;

/* Where instances have their slots. */
static struct {
    Py_ssize_t buffer, signature, host_value, weak_type;                  /* of arrays */
    Py_ssize_t absent, array_class, aval;                                 /* of signatures */
    Py_ssize_t type_weak_type;                                            /* of types of arrays */
    Py_ssize_t captured, collect, donated, execute, handlers, signatures; /* of entries of the cache */
    Py_ssize_t out_index, quick, start, unflatten, used;
} at;

static PyObject *name_trace, *name_trace_context, *name_guard, *name_run, *name_dtype, *name_shape;
static PyObject *name_shared, *name_class, *name_kind, *no_axes;
static unsigned int calls;

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

static inline int is_array(PyObject *x)
{
    PyObject *type = (PyObject *)Py_TYPE(x);
    return type == array_type || type == committed_type;
}

/* Leave a call to Python if an ordinary exception was raised, which the call by Python raises again. */
static Outcome leave(void)
{
    if (!PyErr_Occurred())
        return LEFT;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return FAILED;
    PyErr_Clear();
    return LEFT;
}

/* Replace the exception of a program by the one that users get. */
static void explain(void)
{
    PyObject *error, *shown;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return;
#if PY_VERSION_HEX >= 0x030C0000
    error = PyErr_GetRaisedException();
#else
    PyObject *type, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(error, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
#endif
    shown = PyObject_CallOneArg(explained, error);
    if (shown != NULL && shown != error)
        PyException_SetCause(shown, NULL); /* raise ... from None */
    Py_DECREF(error);
    if (shown == NULL)
        return;
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(shown);
#else
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(shown)), shown, PyException_GetTraceback(shown));
#endif
}

/* Make an array of a buffer; see ``from_buffer`` of ``backends/devices/buffers``. */
static PyObject *wrapped(PyObject *buffer, PyObject *signature)
{
    PyObject *type = SLOT(signature, at.array_class);
    if (type != array_type && type != committed_type) {
        PyErr_SetString(PyExc_SystemError, "a signature has no class of arrays");
        return NULL;
    }
    PyObject *x = ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
    if (x == NULL)
        return NULL;
    SLOT(x, at.buffer) = Py_NewRef(buffer);
    SLOT(x, at.signature) = Py_NewRef(signature);
    SLOT(x, at.host_value) = Py_NewRef(SLOT(signature, at.absent));
    SLOT(x, at.weak_type) = Py_NewRef(SLOT(SLOT(signature, at.aval), at.type_weak_type));
    return x;
}

/* The arguments of a call. All references are its own. */
typedef struct {
    PyObject *leaves; /* the args as they are, or a list */
    PyObject *key;
    PyObject *buffers;
    int converted; /* whether leaves were no arrays; ``leaves`` is then a list */
} Call;

static void clear(Call *call)
{
    Py_CLEAR(call->leaves);
    Py_CLEAR(call->key);
    Py_CLEAR(call->buffers);
}

/* The array of a number that programs were called with lately, or NULL. The reference is a new one. */
static PyObject *known_number(PyObject *x, PyObject *context)
{
    if (PyFloat_CheckExact(x) && PyFloat_AS_DOUBLE(x) == 0 && signbit(PyFloat_AS_DOUBLE(x)))
        return NULL; /* it is equal to the other zero */
    PyObject *key = PyTuple_Pack(3, context, (PyObject *)Py_TYPE(x), x);
    if (key == NULL)
        return NULL;
    PyObject *found = PyDict_GetItemWithError(numbers, key);
    Py_XINCREF(found);
    Py_DECREF(key);
    return found;
}

/* Whether a number was an argument lately: then it may come again, and is worth to be kept. It is noted. */
static int came_lately(PyObject *x)
{
    static Py_hash_t noted[NOTED];
    Py_hash_t hash = PyObject_Hash(x);
    if (hash == -1)
        return PyErr_Occurred() != NULL;
    Py_hash_t *note = &noted[(size_t)hash * 0x9E3779B97F4A7C15ULL >> (64 - NOTED_BITS)];
    int came = *note == hash;
    *note = hash;
    return came;
}

/* An array with a copy of a number or of an array of NumPy's, if one of its type was an argument before; or NULL. */
static PyObject *copy_of(PyObject *x, PyObject *context)
{
    PyObject *key = NULL;
    if (PyFloat_CheckExact(x) || PyLong_CheckExact(x)) {
        key = PyTuple_Pack(3, context, (PyObject *)Py_TYPE(x), no_axes);
    } else {
        PyObject *dtype = PyObject_GetAttr(x, name_dtype), *shape = PyObject_GetAttr(x, name_shape);
        if (dtype != NULL && shape != NULL)
            key = PyTuple_Pack(3, context, dtype, shape);
        Py_XDECREF(dtype);
        Py_XDECREF(shape);
    }
    PyObject *copier = key == NULL ? NULL : PyDict_GetItemWithError(copiers, key), *array = NULL;
    if (copier != NULL && PyTuple_CheckExact(copier) && PyTuple_GET_SIZE(copier) == 2) {
        Py_INCREF(copier);
        PyObject *buffer = PyObject_CallOneArg(PyTuple_GET_ITEM(copier, 1), x);
        if (buffer != NULL)
            array = wrapped(buffer, PyTuple_GET_ITEM(copier, 0));
        Py_XDECREF(buffer);
        Py_DECREF(copier);
    }
    Py_XDECREF(key);
    return array;
}

/* The array of a number or of an array of NumPy's, or NULL if only Python makes it. */
static PyObject *made_quickly(PyObject *x, PyObject *context)
{
    if ((PyObject *)Py_TYPE(x) == numpy_array)
        return copy_of(x, context);
    if (!PyFloat_CheckExact(x) && !PyLong_CheckExact(x) && !PyBool_Check(x) &&
        !PyObject_TypeCheck(x, (PyTypeObject *)numpy_scalar))
        return NULL;
    PyObject *array = known_number(x, context);
    if (array != NULL || PyErr_Occurred() || PyBool_Check(x) || came_lately(x))
        return array;
    return copy_of(x, context);
}

/* Replace leaf i, which is a number or an array of NumPy's, by an array. */
static Outcome convert(Call *call, Py_ssize_t i, PyObject *context)
{
    if (!call->converted) {
        PyObject *guard = PyObject_GetAttr(config, name_guard);
        if (guard == NULL)
            return leave();
        Py_DECREF(guard);
        if (guard != Py_None)
            return LEFT;
        if (!PyList_CheckExact(call->leaves)) {
            PyObject *list = PySequence_List(call->leaves);
            if (list == NULL)
                return leave();
            Py_SETREF(call->leaves, list);
        }
        call->converted = 1;
    }
    PyObject *x = PyList_GET_ITEM(call->leaves, i);
    PyObject *array = made_quickly(x, context);
    if (array == NULL) {
        if (PyErr_Occurred())
            return leave();
        array = PyObject_CallOneArg(operand, x);
        if (array == NULL)
            return leave();
        if (!is_array(array)) {
            Py_DECREF(array);
            return LEFT;
        }
    }
    PyList_SetItem(call->leaves, i, array);
    return DONE;
}

/* Find the leaves of the arguments, and begin the key with the tree that they form. */
static Outcome flatten(Function *self, PyObject *args, PyObject *kwargs, PyObject *context, Call *call)
{
    PyObject *treedef = NULL;
    if (!self->nested && (kwargs == NULL || PyDict_GET_SIZE(kwargs) == 0)) {
        call->leaves = Py_NewRef(args);
    } else {
        if (self->flatten == NULL || self->flatten == Py_None)
            return LEFT;
        PyObject *none = kwargs == NULL ? PyDict_New() : Py_NewRef(kwargs);
        PyObject *tree = none == NULL ? NULL : PyTuple_Pack(2, args, none);
        Py_XDECREF(none);
        PyObject *pair = tree == NULL ? NULL : PyObject_CallOneArg(self->flatten, tree);
        Py_XDECREF(tree);
        if (pair == NULL)
            return leave();
        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyList_CheckExact(PyTuple_GET_ITEM(pair, 0))) {
            Py_DECREF(pair);
            return LEFT;
        }
        call->leaves = Py_NewRef(PyTuple_GET_ITEM(pair, 0));
        treedef = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
        Py_DECREF(pair);
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(call->leaves), head = treedef == NULL ? 1 : 2;
    call->key = PyTuple_New(head + count);
    call->buffers = PyList_New(count);
    if (call->key == NULL || call->buffers == NULL) {
        Py_XDECREF(treedef);
        return leave();
    }
    PyTuple_SET_ITEM(call->key, 0, Py_NewRef(context));
    if (treedef != NULL)
        PyTuple_SET_ITEM(call->key, 1, treedef);
    return DONE;
}

/* Complete the key with the signatures of the leaves, and gather their buffers. */
static Outcome read_leaves(Call *call, PyObject *context)
{
    Py_ssize_t count = PyList_GET_SIZE(call->buffers), head = PyTuple_GET_SIZE(call->key) - count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = PySequence_Fast_GET_ITEM(call->leaves, i);
        if (!is_array(x)) {
            Outcome outcome = convert(call, i, context);
            if (outcome != DONE)
                return outcome;
            x = PyList_GET_ITEM(call->leaves, i);
        }
        PyObject *signature = SLOT(x, at.signature), *buffer = SLOT(x, at.buffer);
        if (signature != NULL) {
            Py_INCREF(signature);
        } else {
            signature = PyObject_CallOneArg(signature_of, x);
            if (signature == NULL)
                return leave();
            buffer = SLOT(x, at.buffer);
        }
        PyTuple_SET_ITEM(call->key, head + i, signature);
        PyList_SET_ITEM(call->buffers, i, Py_XNewRef(buffer)); /* NULL if it has none yet */
    }
    return DONE;
}

/* Keep the buffers of the leaves that a program uses, with those of the arrays that it captured behind them. */
static Outcome select_buffers(Call *call, PyObject *used, PyObject *captured)
{
    if (used != Py_None) {
        Py_ssize_t count = PyList_GET_SIZE(used);
        PyObject *selected = PyList_New(count);
        if (selected == NULL)
            return leave();
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *buffer = PyList_GET_ITEM(call->buffers, PyLong_AsSsize_t(PyList_GET_ITEM(used, i)));
            PyList_SET_ITEM(selected, i, Py_XNewRef(buffer));
        }
        Py_SETREF(call->buffers, selected);
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(call->buffers); i++)
        if (PyList_GET_ITEM(call->buffers, i) == NULL)
            return LEFT;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(captured); i++) {
        PyObject *x = PySequence_Fast_GET_ITEM(captured, i);
        PyObject *buffer = is_array(x) ? SLOT(x, at.buffer) : NULL;
        if (buffer == NULL)
            return LEFT;
        if (PyList_Append(call->buffers, buffer) < 0)
            return leave();
    }
    return DONE;
}

/* Start a program; return a list of the buffers of its results. */
static PyObject *run(PyObject *entry, PyObject *buffers)
{
    if (++calls % GARBAGE_EVERY == 0)
        return PyObject_CallOneArg(SLOT(entry, at.start), buffers);
    PyObject *started = PyObject_CallOneArg(SLOT(entry, at.execute), buffers);
    if (started == NULL)
        return NULL;
    PyObject *outs = PyObject_CallFunctionObjArgs(SLOT(entry, at.collect), started, SLOT(entry, at.handlers), NULL);
    Py_DECREF(started);
    return outs;
}

/* Make result i of a function: of a buffer among the program's results, or of a leaf that is handed through. */
static PyObject *result_of(PyObject *entry, Call *call, PyObject *outs, Py_ssize_t i)
{
    PyObject *out_index = SLOT(entry, at.out_index);
    if (out_index != Py_None) {
        i = PyLong_AsSsize_t(PyList_GET_ITEM(out_index, i));
        if (i < 0)
            return PyObject_CallOneArg(fresh, PySequence_Fast_GET_ITEM(call->leaves, ~i));
    }
    return wrapped(PyList_GET_ITEM(outs, i), PyList_GET_ITEM(SLOT(entry, at.signatures), i));
}

/* Make the tree of a function's results. */
static PyObject *results(PyObject *entry, Call *call, PyObject *outs)
{
    PyObject *unflatten = SLOT(entry, at.unflatten), *out_index = SLOT(entry, at.out_index);
    if (!PyList_CheckExact(outs) || PyList_GET_SIZE(outs) != PyList_GET_SIZE(SLOT(entry, at.signatures))) {
        PyErr_SetString(PyExc_SystemError, "the results of a program are not those that it has signatures for");
        return NULL;
    }
    if (unflatten == Py_None)
        return result_of(entry, call, outs, 0);
    Py_ssize_t count = PyList_GET_SIZE(out_index == Py_None ? outs : out_index);
    PyObject *arrays = PyList_New(count), *tree = NULL;
    if (arrays == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = result_of(entry, call, outs, i);
        if (x == NULL)
            goto end;
        PyList_SET_ITEM(arrays, i, x);
    }
    tree = PyObject_CallOneArg(unflatten, arrays);
end:
    Py_DECREF(arrays);
    return tree;
}

static int compare(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

/* Whether a program would take the same buffer twice. */
static Outcome are_different(PyObject *buffers)
{
    size_t count = (size_t)PyList_GET_SIZE(buffers);
    PyObject **sorted = PyMem_Malloc(count * sizeof *sorted);
    if (sorted == NULL)
        return LEFT;
    memcpy(sorted, ((PyListObject *)buffers)->ob_item, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    Outcome outcome = DONE;
    for (size_t i = 1; i < count; i++)
        if (sorted[i] == sorted[i - 1])
            outcome = LEFT;
    PyMem_Free(sorted);
    return outcome;
}

/* The leaf of the arguments that is donated as number i. */
static PyObject *donated_leaf(Call *call, PyObject *donated, Py_ssize_t i)
{
    return PySequence_Fast_GET_ITEM(call->leaves, PyLong_AsSsize_t(PyTuple_GET_ITEM(donated, i)));
}

/* Drop views of donated arrays on the host. A buffer that must be copied before leaves the call to Python. */
static Outcome donate(Call *call, PyObject *donated)
{
    Py_ssize_t count = PyTuple_GET_SIZE(donated);
    if (are_different(call->buffers) != DONE)
        return LEFT;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *buffer = PyList_GET_ITEM(call->buffers, PyLong_AsSsize_t(PyTuple_GET_ITEM(donated, i)));
        if (PyObject_HasAttr(buffer, name_shared) || !is_array(donated_leaf(call, donated, i)))
            return LEFT;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = donated_leaf(call, donated, i);
        Py_XSETREF(SLOT(x, at.host_value), Py_NewRef(SLOT(SLOT(x, at.signature), at.absent)));
    }
    return DONE;
}

/* Make deleted arrays of the donated ones; see ``delete`` of ``core/array``. */
static int delete_donated(Call *call, PyObject *donated)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(donated); i++) {
        PyObject *x = donated_leaf(call, donated, i);
        Py_CLEAR(SLOT(x, at.host_value));
        Py_CLEAR(SLOT(x, at.buffer));
        if (PyObject_SetAttr(x, name_class, deleted_type) < 0)
            return -1;
    }
    return 0;
}

/* Whether the module can run the program of an entry. The entry's class says what is of which type; this makes sure. */
static int is_quick(PyObject *entry, Call *call)
{
    PyObject *used = SLOT(entry, at.used), *out_index = SLOT(entry, at.out_index);
    PyObject *captured = SLOT(entry, at.captured), *donated = SLOT(entry, at.donated);
    if (SLOT(entry, at.quick) != Py_True || !PyTuple_CheckExact(donated) ||
        !PyList_CheckExact(SLOT(entry, at.signatures)) || !(used == Py_None || PyList_CheckExact(used)) ||
        !(out_index == Py_None || PyList_CheckExact(out_index)) ||
        !(PyList_CheckExact(captured) || PyTuple_CheckExact(captured)))
        return 0;
    if (PyTuple_GET_SIZE(donated))
        return used == Py_None && out_index == Py_None && !call->converted;
    return out_index == Py_None || !call->converted; /* what was converted is for programs only */
}

/* Run the program of an entry of the cache, or have the entry do it. */
static Outcome run_entry(PyObject *entry, Call *call, PyObject **result)
{
    int quick = is_quick(entry, call);
    if (!quick && call->converted)
        return LEFT;
    PyObject *donated = SLOT(entry, at.donated);
    Outcome outcome = quick ? select_buffers(call, SLOT(entry, at.used), SLOT(entry, at.captured)) : LEFT;
    if (outcome == FAILED)
        return FAILED;
    if (outcome == DONE && PyTuple_GET_SIZE(donated) && donate(call, donated) != DONE)
        return LEFT;
    if (outcome == DONE) {
        PyObject *outs = run(entry, call->buffers);
        if (outs != NULL && delete_donated(call, donated) == 0)
            *result = results(entry, call, outs);
        Py_XDECREF(outs);
    } else {
        *result = PyObject_CallMethodOneArg(entry, name_run, call->leaves);
    }
    if (*result == NULL) {
        explain();
        return FAILED;
    }
    return DONE;
}

/* Whether the current trace evaluates. */
static int is_eager(void)
{
    PyObject *trace = PyObject_GetAttr(state, name_trace);
    Py_XDECREF(trace); /* the thread's state has it */
    return trace == eval_trace;
}

static Outcome call_quickly(Function *self, PyObject *args, PyObject *kwargs, PyObject **result)
{
    if (!self->plain || self->compiled == NULL || !PyDict_Check(self->compiled) || !is_eager())
        return leave();
    PyObject *context = PyObject_GetAttr(config, name_trace_context);
    if (context == NULL)
        return leave();
    Call call = {0};
    Outcome outcome = flatten(self, args, kwargs, context, &call);
    if (outcome == DONE)
        outcome = read_leaves(&call, context);
    if (outcome == DONE) {
        PyObject *entry = PyDict_GetItemWithError(self->compiled, call.key);
        if (entry != NULL && (PyObject *)Py_TYPE(entry) == entry_type) {
            Py_INCREF(entry);
            outcome = run_entry(entry, &call, result);
            Py_DECREF(entry);
        } else {
            outcome = leave();
        }
    }
    clear(&call);
    Py_DECREF(context);
    return outcome;
}

static PyObject *function_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *result = NULL;
    Outcome outcome = call_quickly((Function *)self, args, kwargs, &result);
    if (outcome != LEFT)
        return result;
    if (python_call == NULL) {
        PyErr_SetString(PyExc_SystemError, "configure was not called");
        return NULL;
    }
    PyObject *method = PyMethod_New(python_call, self);
    if (method == NULL)
        return NULL;
    result = PyObject_Call(method, args, kwargs);
    Py_DECREF(method);
    return result;
}

static int function_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Function *)self)->compiled);
    Py_VISIT(((Function *)self)->flatten);
    return 0;
}

static int function_clear(PyObject *self)
{
    Py_CLEAR(((Function *)self)->compiled);
    Py_CLEAR(((Function *)self)->flatten);
    return 0;
}

static void function_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    function_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef function_members[] = {
    {"_compiled", T_OBJECT_EX, offsetof(Function, compiled), 0, NULL},
    {"_flatten", T_OBJECT_EX, offsetof(Function, flatten), 0, NULL},
    {"_plain", T_BOOL, offsetof(Function, plain), 0, NULL},
    {"_nested", T_BOOL, offsetof(Function, nested), 0, NULL},
    {NULL},
};

static PyType_Slot function_slots[] = {
    {Py_tp_doc, "The base class of functions under jit: its calls take the quick way where there is one."},
    {Py_tp_call, function_call},
    {Py_tp_traverse, function_traverse},
    {Py_tp_clear, function_clear},
    {Py_tp_dealloc, function_dealloc},
    {Py_tp_members, function_members},
    {0, NULL},
};

static PyType_Spec function_spec = {
    .name = "pullback.transforms.jit.quick.Function",
    .basicsize = sizeof(Function),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = function_slots,
};

/* Find where instances of a class have a slot. */
static int find_slot(PyObject *type, const char *name, Py_ssize_t *offset)
{
    PyObject *found = PyObject_GetAttrString(type, name);
    if (found == NULL)
        return -1;
    PyMemberDef *member = Py_IS_TYPE(found, &PyMemberDescr_Type) ? ((PyMemberDescrObject *)found)->d_member : NULL;
    if (member != NULL && member->type == T_OBJECT_EX)
        *offset = member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, name);
    Py_DECREF(found);
    return PyErr_Occurred() ? -1 : 0;
}

static int find_slots(void)
{
    struct {
        PyObject *type;
        const char *name;
        Py_ssize_t *offset;
    } slots[] = {
        {array_type, "_buffer", &at.buffer},
        {array_type, "_signature", &at.signature},
        {array_type, "_host_value", &at.host_value},
        {array_type, "weak_type", &at.weak_type},
        {signature_type, "absent", &at.absent},
        {signature_type, "array_class", &at.array_class},
        {signature_type, "aval", &at.aval},
        {aval_type, "weak_type", &at.type_weak_type},
        {entry_type, "captured", &at.captured},
        {entry_type, "collect", &at.collect},
        {entry_type, "donated", &at.donated},
        {entry_type, "execute", &at.execute},
        {entry_type, "handlers", &at.handlers},
        {entry_type, "signatures", &at.signatures},
        {entry_type, "out_index", &at.out_index},
        {entry_type, "quick", &at.quick},
        {entry_type, "start", &at.start},
        {entry_type, "unflatten", &at.unflatten},
        {entry_type, "used", &at.used},
    };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (find_slot(slots[i].type, slots[i].name, slots[i].offset) < 0)
            return -1;
    return 0;
}

/* The buffer of NumPy's array with the elements, if they are on the host and of a dtype that buffers know. */
static int get_host_buffer(PyObject *x, Py_buffer *view, int flags)
{
    PyObject *value = is_array(x) ? SLOT(x, at.host_value) : NULL;
    if ((flags & PyBUF_WRITABLE) || value == NULL || (PyObject *)Py_TYPE(value) != numpy_array)
        return -1;
    Py_INCREF(value);
    PyObject *dtype = PyObject_GetAttr(value, name_dtype);
    PyObject *kind = dtype == NULL ? NULL : PyObject_GetAttr(dtype, name_kind);
    int failed = kind == NULL || PyUnicode_READ_CHAR(kind, 0) == 'V' || PyObject_GetBuffer(value, view, flags) < 0;
    if (!failed)
        view->readonly = 1;
    Py_XDECREF(kind);
    Py_XDECREF(dtype);
    Py_DECREF(value);
    PyErr_Clear();
    return failed ? -1 : 0;
}

/* The buffer of an array: that of the ``memoryview`` that its method ``__buffer__`` returns, or the same without it. */
static int get_buffer(PyObject *x, Py_buffer *view, int flags)
{
    if (get_host_buffer(x, view, flags) == 0)
        return 0;
    view->obj = NULL;
    PyObject *memory = PyObject_CallMethod(x, "__buffer__", "i", flags);
    int failed = memory == NULL || PyObject_GetBuffer(memory, view, flags) < 0;
    Py_XDECREF(memory);
    return failed ? -1 : 0;
}

/* Give a class of Python's and its subclasses this buffer. Python 3.12 and later give one by ``__buffer__`` themselves,
   through which NumPy takes five times as long to convert an array. */
static int export_buffers(PyTypeObject *cls)
{
    if (!PyType_HasFeature(cls, Py_TPFLAGS_HEAPTYPE))
        return PyErr_Format(PyExc_TypeError, "%R is no class of Python's", cls), -1;
    cls->tp_as_buffer->bf_getbuffer = get_buffer;
    PyObject *below = PyObject_CallMethod((PyObject *)cls, "__subclasses__", NULL);
    int failed = below == NULL;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(below); i++)
        failed = export_buffers((PyTypeObject *)PyList_GET_ITEM(below, i)) < 0;
    Py_XDECREF(below);
    return failed ? -1 : 0;
}

/* Keep the objects of Python that calls use, which ``quick.pyi`` lists. */
static PyObject *configure(PyObject *module, PyObject *args, PyObject *objects)
{
    struct {
        const char *name;
        PyObject **kept;
    } all[] = {
        {"python_call", &python_call},       {"state", &state},
        {"eval_trace", &eval_trace},         {"config", &config},
        {"numbers", &numbers},               {"copiers", &copiers},
        {"operand", &operand},               {"signature_of", &signature_of},
        {"explained", &explained},           {"fresh", &fresh},
        {"array_type", &array_type},
        {"committed_type", &committed_type}, {"signature_type", &signature_type},
        {"aval_type", &aval_type},           {"entry_type", &entry_type},
        {"deleted_type", &deleted_type},     {"numpy_array", &numpy_array},
        {"numpy_scalar", &numpy_scalar},
    };
    (void)module;
    if (!PyArg_ParseTuple(args, ""))
        return NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        PyObject *object = objects == NULL ? NULL : PyDict_GetItemString(objects, all[i].name);
        if (object == NULL)
            return PyErr_Format(PyExc_TypeError, "%s is missing", all[i].name);
        Py_XSETREF(*all[i].kept, Py_NewRef(object));
    }
    if (!PyDict_Check(numbers) || !PyDict_Check(copiers) || !PyType_Check(array_type) || !PyType_Check(numpy_scalar))
        return PyErr_Format(PyExc_TypeError, "an object is of another type");
    if (find_slots() < 0 || export_buffers((PyTypeObject *)array_type) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Whether instances of a class and of its base class are the same in memory, as ``__class__ = cls`` asks. */
static int has_same_layout(PyTypeObject *cls, PyTypeObject *base)
{
    unsigned long fields = Py_TPFLAGS_HAVE_GC;
#ifdef Py_TPFLAGS_MANAGED_DICT
    fields |= Py_TPFLAGS_MANAGED_DICT;
#endif
#ifdef Py_TPFLAGS_MANAGED_WEAKREF
    fields |= Py_TPFLAGS_MANAGED_WEAKREF;
#endif
    return cls->tp_base == base && PyType_HasFeature(cls, Py_TPFLAGS_HEAPTYPE) &&
           PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) && ((cls->tp_flags ^ base->tp_flags) & fields) == 0 &&
           cls->tp_basicsize == base->tp_basicsize && cls->tp_itemsize == base->tp_itemsize &&
           cls->tp_dictoffset == base->tp_dictoffset && cls->tp_weaklistoffset == base->tp_weaklistoffset &&
           cls->tp_free == base->tp_free;
}

/* Make an object an instance of a subclass of its class that adds no fields, and return whether it could be done.

   Python refuses it for the classes of some modules in C, though it is sound, since nobody may change these classes. */
static PyObject *as_subclass(PyObject *module, PyObject *args)
{
    PyObject *object;
    PyTypeObject *cls;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &object, &PyType_Type, &cls))
        return NULL;
    PyTypeObject *base = Py_TYPE(object);
    if (!has_same_layout(cls, base))
        Py_RETURN_FALSE;
    Py_INCREF(cls);
    Py_SET_TYPE(object, cls);
    Py_DECREF(base);
    Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
    {"as_subclass", as_subclass, METH_VARARGS, "Make an object an instance of a subclass without fields of its own."},
    {"configure", (PyCFunction)(void (*)(void))configure, METH_VARARGS | METH_KEYWORDS,
     "Keep the objects that calls use; to be called once, before the first call."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "quick", .m_doc = "Quick calls of compiled functions.", .m_size = -1,
    .m_methods = methods};

PyMODINIT_FUNC PyInit_quick(void)
{
    if ((name_trace = PyUnicode_InternFromString("trace")) == NULL ||
        (name_trace_context = PyUnicode_InternFromString("trace_context")) == NULL ||
        (name_guard = PyUnicode_InternFromString("transfer_guard_host_to_device")) == NULL ||
        (name_run = PyUnicode_InternFromString("run")) == NULL ||
        (name_dtype = PyUnicode_InternFromString("dtype")) == NULL ||
        (name_shape = PyUnicode_InternFromString("shape")) == NULL ||
        (name_kind = PyUnicode_InternFromString("kind")) == NULL ||
        (name_shared = PyUnicode_InternFromString("shared")) == NULL ||
        (name_class = PyUnicode_InternFromString("__class__")) == NULL || (no_axes = PyTuple_New(0)) == NULL)
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    PyObject *function = module == NULL ? NULL : PyType_FromSpec(&function_spec);
    if (function == NULL || PyModule_AddObjectRef(module, "Function", function) < 0)
        Py_CLEAR(module);
    Py_XDECREF(function);
    return module;
}

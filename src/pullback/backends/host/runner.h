/* A thread that makes calls for another one, which waits where signal handlers run.

   Both spin for a while before they sleep: to wake a thread takes 20 to 50 us, where the call may take 5. Each gives Python's lock back before it calls the other, who would have to sleep for it otherwise. */

typedef struct {
    PyObject_HEAD
    PyThread_type_lock asked, ended; /* held, until the other thread releases them */
    PyObject *function, *argument, *result, *error;
    double caller_spins, thread_spins, sleeps; /* seconds; the caller looks for signals after each sleep */
    int runs, leaving; /* under Python's lock */
} Runner;

/* Take a lock within so many seconds, without sleeping; other threads may have the core meanwhile. */
static int spin_for(PyThread_type_lock lock, double seconds) {
    double end = seconds > 0 ? seconds_now() + seconds : 0;
    for (int i = 1;; i++) {
        if (PyThread_acquire_lock(lock, NOWAIT_LOCK)) return 1;
        if (seconds <= 0) return 0;
        for (int k = 0; k < 16; k++) PAUSE(); /* another core may share this one's units */
        if (i % 16 == 0) {
            if (seconds_now() > end) return 0;
            yield_core();
        }
    }
}

static PyObject *runner_new(PyTypeObject *type, PyObject *args, PyObject *unused) {
    double caller_spins, thread_spins, sleeps;
    if (!PyArg_ParseTuple(args, "ddd", &caller_spins, &thread_spins, &sleeps)) return NULL;
    Runner *self = (Runner *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->caller_spins = caller_spins;
    self->thread_spins = thread_spins;
    self->sleeps = sleeps;
    self->asked = PyThread_allocate_lock();
    self->ended = PyThread_allocate_lock();
    if (self->asked == NULL || self->ended == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    PyThread_acquire_lock(self->asked, WAIT_LOCK);
    PyThread_acquire_lock(self->ended, WAIT_LOCK);
    return (PyObject *)self;
}

static void runner_dealloc(Runner *self) {
    for (int i = 0; i < 2; i++) {
        PyThread_type_lock lock = i ? self->asked : self->ended;
        if (lock == NULL) continue;
        PyThread_acquire_lock(lock, NOWAIT_LOCK); /* it is held, or nobody holds it */
        PyThread_release_lock(lock);
        PyThread_free_lock(lock);
    }
    Py_CLEAR(self->function);
    Py_CLEAR(self->argument);
    Py_CLEAR(self->result);
    Py_CLEAR(self->error);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *raised(void) {
#if PY_VERSION_HEX >= 0x030c0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

/* The outcome of the call, which has ended: its result, or NULL with its exception set. */
static PyObject *outcome(Runner *self) {
    PyObject *result = self->result, *error = self->error;
    self->result = self->error = NULL;
    self->runs = 0;
    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error); /* keeps its traceback */
        Py_DECREF(error);
    }
    return result;
}

PyDoc_STRVAR(runner_call_doc,
"call($self, function, argument, /)\n--\n\n"
"Let the thread call a function with an argument; return its result, or raise its exception.\n\n"
"Signal handlers run meanwhile, in the main thread. What one raises is raised at once, and the call goes on: `runs` says so.");

static PyObject *runner_call(Runner *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || self->runs || self->leaving)
        return PyErr_Format(PyExc_RuntimeError, "expected a function and an argument, and a thread that is free");
    self->function = Py_NewRef(args[0]);
    self->argument = Py_NewRef(args[1]);
    self->runs = 1;
    int has_ended;
    Py_BEGIN_ALLOW_THREADS
    PyThread_release_lock(self->asked);
    has_ended = spin_for(self->ended, self->caller_spins);
    Py_END_ALLOW_THREADS
    while (!has_ended) {
        PyLockStatus status;
        Py_BEGIN_ALLOW_THREADS
        status = PyThread_acquire_lock_timed(self->ended, (PY_TIMEOUT_T)(1e6 * self->sleeps), 1);
        Py_END_ALLOW_THREADS
        has_ended = status == PY_LOCK_ACQUIRED;
        if (PyErr_CheckSignals() < 0) {
            if (has_ended) PyThread_release_lock(self->ended); /* for `wait` */
            return NULL;
        }
    }
    return outcome(self);
}

PyDoc_STRVAR(runner_serve_doc, "serve($self, /)\n--\n\nMake the calls, in the thread that calls this, until it is to leave.");

static PyObject *runner_serve(Runner *self, PyObject *unused) {
    for (;;) {
        Py_BEGIN_ALLOW_THREADS
        if (!spin_for(self->asked, self->thread_spins)) PyThread_acquire_lock(self->asked, WAIT_LOCK);
        Py_END_ALLOW_THREADS
        PyObject *function = self->function, *argument = self->argument;
        self->function = self->argument = NULL;
        if (function == NULL) break; /* woken in order to leave */
        self->result = PyObject_CallOneArg(function, argument);
        self->error = self->result == NULL ? raised() : NULL;
        Py_DECREF(function);
        Py_DECREF(argument);
        int leaving = self->leaving;
        Py_BEGIN_ALLOW_THREADS
        PyThread_release_lock(self->ended);
        Py_END_ALLOW_THREADS
        if (leaving) break;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(runner_wait_doc,
"wait($self, seconds, /)\n--\n\n"
"Wait for the end of a call that was left, and forget its outcome; return whether it has ended.");

static PyObject *runner_wait(Runner *self, PyObject *seconds) {
    double most = PyFloat_AsDouble(seconds);
    if (most == -1 && PyErr_Occurred()) return NULL;
    double end = seconds_now() + most;
    for (;;) {
        if (!self->runs) Py_RETURN_TRUE;
        double left = end - seconds_now();
        PyLockStatus status;
        Py_BEGIN_ALLOW_THREADS
        status = PyThread_acquire_lock_timed(self->ended, left > 0 ? (PY_TIMEOUT_T)(1e6 * left) : 0, 1);
        Py_END_ALLOW_THREADS
        if (status == PY_LOCK_ACQUIRED) {
            Py_XDECREF(outcome(self));
            PyErr_Clear();
            PyThread_release_lock(self->ended); /* for others that wait */
        }
        if (PyErr_CheckSignals() < 0) return NULL;
        if (status != PY_LOCK_ACQUIRED && left <= 0) Py_RETURN_FALSE;
    }
}

PyDoc_STRVAR(runner_leave_doc, "leave($self, /)\n--\n\nLet the thread end, after the call that it makes.");

static PyObject *runner_leave(Runner *self, PyObject *unused) {
    if (!self->leaving) PyThread_release_lock(self->asked);
    self->leaving = 1;
    Py_RETURN_NONE;
}

static PyObject *runner_runs(Runner *self, void *unused) { return PyBool_FromLong(self->runs); }

static PyMethodDef RUNNER_METHODS[] = {
    {"call", (PyCFunction)(void (*)(void))runner_call, METH_FASTCALL, runner_call_doc},
    {"serve", (PyCFunction)runner_serve, METH_NOARGS, runner_serve_doc},
    {"wait", (PyCFunction)runner_wait, METH_O, runner_wait_doc},
    {"leave", (PyCFunction)runner_leave, METH_NOARGS, runner_leave_doc},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef RUNNER_ATTRIBUTES[] = {
    {"runs", (getter)runner_runs, NULL, "Whether a call was begun whose outcome nobody has.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject RUNNER = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pullback.backends.host.loops.Runner",
    .tp_doc = "Makes calls on the thread that serves it. The arguments: for how many seconds a caller spins, the thread spins, and a caller sleeps at most between looks for signals.",
    .tp_basicsize = sizeof(Runner),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = runner_new,
    .tp_dealloc = (destructor)runner_dealloc,
    .tp_methods = RUNNER_METHODS,
    .tp_getset = RUNNER_ATTRIBUTES,
};

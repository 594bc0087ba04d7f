/* Functions that compiled programs call, by the C interface of XLA's foreign functions.

   Declared here is what they read or write of its structures: the beginnings, which later versions keep. */

typedef struct Extension {
    size_t struct_size;
    int type;
    struct Extension *next;
} Extension;

typedef struct {
    size_t struct_size;
    Extension *extensions;
    int major, minor;
} Version;

typedef struct {
    size_t struct_size;
    Extension *extensions;
    Version version;
} Interface;

typedef struct {
    size_t struct_size;
    Version version;
    uint32_t traits;
} Metadata;

typedef struct {
    Extension base;
    Metadata *metadata;
} MetadataExtension;

typedef struct {
    size_t struct_size;
    Extension *extensions;
    int dtype;
    void *data;
} Buffer;

typedef struct {
    size_t struct_size;
    Extension *extensions;
    int64_t size;
    int *types;
    void **values;
} Values;

typedef struct {
    size_t struct_size;
    Extension *extensions;
    const Interface *interface;
    void *context;
    int stage;
    Values operands, results;
} Frame;

enum { METADATA = 1, EXECUTE = 3 };

/* Whether a call executes a function. Otherwise the runtime registers or prepares it, and asks for its version. */
static int executes(Frame *frame) {
    for (Extension *x = frame->extensions; x != NULL; x = x->next) {
        if (x->type == METADATA) {
            Metadata *metadata = ((MetadataExtension *)x)->metadata;
            metadata->version.major = frame->interface->version.major;
            metadata->version.minor = frame->interface->version.minor;
            metadata->traits = 0;
            return 0;
        }
    }
    return frame->stage == EXECUTE;
}

static void *address(Values *values, int i) { return ((Buffer *)values->values[i])->data; }

static PyObject *capsule(void *(*function)(Frame *)) {
    return PyCapsule_New((void *)function, "xla._CUSTOM_CALL_TARGET", NULL);
}

static Shared stopping;

enum { MILLISECOND = 1000000, MOST_STEPS = 1 << 30 };

/* How many steps the next slice of a loop may take; -1 if it is to stop.

   Operands: the steps of the slice before, and the time at which it began in nanoseconds, 0 if there was none. Results:
   the steps, and the time. All are 64-bit integers. A slice takes 1 to 20 ms; how many steps are in a slice changes no
   bit of what the loop computes. */
static void *goes_on(Frame *frame) {
    if (!executes(frame)) return NULL;
    int64_t steps = *(int64_t *)address(&frame->operands, 0), begin = *(int64_t *)address(&frame->operands, 1);
    int64_t now = (int64_t)(1e9 * seconds_now());
    if (shared_glance(&stopping)) steps = -1;
    else if (begin && now - begin < MILLISECOND) steps = steps < MOST_STEPS / 8 ? 8 * steps : MOST_STEPS;
    else if (begin && now - begin > 20 * MILLISECOND) steps = steps > 8 ? steps / 8 : 1;
    *(int64_t *)address(&frame->results, 0) = steps;
    *(int64_t *)address(&frame->results, 1) = now;
    return NULL; /* no error */
}

PyDoc_STRVAR(loops_go_on_doc,
"loops_go_on($module, go_on, /)\n--\n\n"
"Say whether compiled loops that ask are to go on; return the foreign function that they call, in a capsule.");

static PyObject *loops_go_on(PyObject *module, PyObject *go_on) {
    int answer = PyObject_IsTrue(go_on);
    if (answer < 0) return NULL;
    shared_set(&stopping, !answer);
    return capsule(goes_on);
}

enum { PIECE_TAKEN = 1 << 19 };

/* Copies its first operand to its result by pieces, and gives the memory of each piece back to the system, so that one
   array is in memory, and not two. The operand's elements are lost. The second operand is the number of bytes. */
static void *take(Frame *frame) {
    if (!executes(frame)) return NULL;
    char *from = address(&frame->operands, 0), *to = address(&frame->results, 0);
    uint64_t size = *(uint64_t *)address(&frame->operands, 1);
    uintptr_t page = page_size(), given = page ? ((uintptr_t)from + page - 1) / page * page : 0;
    for (uint64_t at = 0; at < size; at += PIECE_TAKEN) {
        uint64_t piece = size - at < PIECE_TAKEN ? size - at : PIECE_TAKEN;
        memcpy(to + at, from + at, piece);
        if (!page) continue;
        uintptr_t end = (uintptr_t)(from + at + piece) / page * page; /* whole pages alone */
        if (end > given) give_back((void *)given, end - given);
        given = end > given ? end : given;
    }
    return NULL;
}

PyDoc_STRVAR(taking_doc,
"taking($module, /)\n--\n\n"
"Return the foreign function that copies an array and gives its memory back to the system, in a capsule.");

static PyObject *taking(PyObject *module, PyObject *unused) { return capsule(take); }

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

static atomic_int stopping;

/* Its one result is a boolean: whether the loop that calls it is to go on. */
static void *goes_on(Frame *frame) {
    if (executes(frame)) *(char *)address(&frame->results, 0) = !atomic_load_explicit(&stopping, memory_order_relaxed);
    return NULL; /* no error */
}

PyDoc_STRVAR(loops_go_on_doc,
"loops_go_on($module, go_on, /)\n--\n\n"
"Say whether compiled loops that ask are to go on; return the foreign function that they call, in a capsule.");

static PyObject *loops_go_on(PyObject *module, PyObject *go_on) {
    int answer = PyObject_IsTrue(go_on);
    if (answer < 0) return NULL;
    atomic_store(&stopping, !answer);
    return capsule(goes_on);
}

enum { PIECE_TAKEN = 1 << 19 };

/* Copies its first operand to its result by pieces, and gives the memory of each piece back to the system, so that one
   array is in memory, and not two. The operand's elements are lost. The second operand is the number of bytes. */
static void *take(Frame *frame) {
    if (!executes(frame)) return NULL;
    char *from = address(&frame->operands, 0), *to = address(&frame->results, 0);
    uint64_t size = *(uint64_t *)address(&frame->operands, 1);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), given = ((uintptr_t)from + page - 1) / page * page;
    for (uint64_t at = 0; at < size; at += PIECE_TAKEN) {
        uint64_t piece = size - at < PIECE_TAKEN ? size - at : PIECE_TAKEN;
        memcpy(to + at, from + at, piece);
        uintptr_t end = (uintptr_t)(from + at + piece) / page * page; /* whole pages alone */
        if (end > given) madvise((void *)given, end - given, MADV_DONTNEED);
        given = end > given ? end : given;
    }
    return NULL;
}

PyDoc_STRVAR(taking_doc,
"taking($module, /)\n--\n\n"
"Return the foreign function that copies an array and gives its memory back to the system, in a capsule.");

static PyObject *taking(PyObject *module, PyObject *unused) { return capsule(take); }

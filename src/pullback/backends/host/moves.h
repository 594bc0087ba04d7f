/* Copies between arrays of any axes, several at once, on all cores.

   A copy is divided into blocks: a range of one axis at one position on each axis before it. The axes are those of the
   target, from the widest stride to the narrowest; neighbours that are one run in both arrays are one axis. */

enum {
    MOST_AXES = NPY_MAXDIMS,
    MOVED = 1 << 16, /* the bytes of a block: much less than a core's cache, and much more than a call takes */
    TILE = 16,       /* the rows and columns that a transposition reads before it goes on: each cache line once */
    LINE = 64,       /* bytes of a cache line */
    FEW = 16,        /* columns, for which a loop takes longer to begin than to run */
    SOME = 256,      /* rows whose elements stay in a core's first cache */
};

typedef struct {
    char *to;
    const char *from;
    int ndim, axis;                                         /* the axis that is divided */
    npy_intp sizes[MOST_AXES], down[MOST_AXES], up[MOST_AXES]; /* the strides of the target and of the source */
    npy_intp item, range, ranges, blocks;
} Move;

typedef struct {
    const Move *moves;
    npy_intp count;
    int are_alike; /* whether all have the same axes and target strides, so that a block is one of each */
} Moves;

/* Elements of two axes, by the size of an element. Columns that are few are the outer loop, for some rows at a time. */
#define PLANE(name, type, each)                                                                             \
    static void name(char *to, const char *from, npy_intp rows, npy_intp columns, npy_intp to_row,          \
                          npy_intp to_column, npy_intp from_row, npy_intp from_column) {                    \
        const npy_intp item = sizeof(type);                                                                 \
        if (columns < FEW && columns < rows) {                                                              \
            for (npy_intp first = 0; first < rows; first += SOME) {                                         \
                const npy_intp n = rows - first < SOME ? rows - first : SOME;                               \
                for (npy_intp c = 0; c < columns; c++) {                                                    \
                    char *out = to + first * to_row + c * to_column;                                        \
                    const char *x = from + first * from_row + c * from_column;                              \
                    each(i, n) *(type *)(out + i * to_row) = *(const type *)(x + i * from_row);             \
                }                                                                                           \
            }                                                                                               \
            return;                                                                                         \
        }                                                                                                   \
        for (npy_intp r = 0; r < rows; r++, to += to_row, from += from_row) {                               \
            type *out = (type *)to;                                                                         \
            const type *x = (const type *)from;                                                             \
            if (to_column == item && from_column == 0) {                                                    \
                const type same = *x;                                                                       \
                each(i, columns) out[i] = same;                                                             \
            } else if (to_column == item && from_column == item) {                                          \
                each(i, columns) out[i] = x[i];                                                             \
            } else if (to_column == item && from_column == -item) {                                         \
                each(i, columns) out[i] = x[-i];                                                            \
            } else if (to_column == item) {                                                                 \
                each(i, columns) out[i] = *(const type *)(from + i * from_column);                          \
            } else {                                                                                        \
                each(i, columns) *(type *)(to + i * to_column) = *(const type *)(from + i * from_column);   \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    INLINE void tile_##name(char *to, const char *from, npy_intp rows, npy_intp columns, npy_intp to_row, npy_intp from_column) { \
        type tile[TILE][TILE];                                                                              \
        for (npy_intp j = 0; j < columns; j++) memcpy(tile[j], from + j * from_column, rows * sizeof(type)); \
        for (npy_intp i = 0; i < rows; i++) {                                                               \
            type *out = (type *)(to + i * to_row);                                                          \
            for (npy_intp j = 0; j < columns; j++) out[j] = tile[j][i];                                     \
        }                                                                                                   \
    }                                                                                                       \
    /* The source has elements of a column side by side, and the target those of a row. */                  \
    static void turned_##name(char *to, const char *from, npy_intp rows, npy_intp columns, npy_intp to_row, \
                              npy_intp from_column) {                                                       \
        for (npy_intp c = 0; c < columns; c += TILE) {                                                      \
            const npy_intp wide = columns - c < TILE ? columns - c : TILE;                                  \
            for (npy_intp r = 0; r < rows; r += TILE) {                                                     \
                const npy_intp high = rows - r < TILE ? rows - r : TILE;                                    \
                char *out = to + r * to_row + c * sizeof(type);                                             \
                const char *x = from + c * from_column + r * sizeof(type);                                  \
                if (high == TILE && wide == TILE) tile_##name(out, x, TILE, TILE, to_row, from_column);     \
                else tile_##name(out, x, high, wide, to_row, from_column);                                  \
            }                                                                                               \
        }                                                                                                   \
    }
typedef struct { uint64_t low, high; } Pair64; /* a complex number of 128 bits */
PLANE(plane_1, uint8_t, EACH)
PLANE(plane_2, uint16_t, EACH)
PLANE(plane_4, uint32_t, EACH)
PLANE(plane_8, uint64_t, EACH)
#define EACH_PAIR(i, n) for (npy_intp i = 0; i < (n); i++) /* of which compilers make no vectors */
PLANE(plane_16, Pair64, EACH_PAIR)

#define BY_ITEM(item, function, ...)                                                                        \
    do {                                                                                                    \
        if (item == 4) function##_4(__VA_ARGS__);                                                           \
        else if (item == 8) function##_8(__VA_ARGS__);                                                      \
        else if (item == 2) function##_2(__VA_ARGS__);                                                      \
        else if (item == 1) function##_1(__VA_ARGS__);                                                      \
        else function##_16(__VA_ARGS__);                                                                    \
    } while (0)

static const Pair64 zero[1];

static void copy_plane(const Move *m, char *to, const char *from, npy_intp rows, npy_intp columns, npy_intp to_row,
                       npy_intp to_column, npy_intp from_row, npy_intp from_column) {
    const npy_intp item = m->item;
    if (from_column == 0 && from_row == 0 && to_column == item && !memcmp(from, zero, item)) {
        for (npy_intp r = 0; r < rows; r++) memset(to + r * to_row, 0, columns * item);
    } else if (to_column == item && from_column == item && columns * item >= LINE) {
        for (npy_intp r = 0; r < rows; r++) memcpy(to + r * to_row, from + r * from_row, columns * item);
    } else if (to_column == item && from_row == item && rows > 1) {
        BY_ITEM(item, turned_plane, to, from, rows, columns, to_row, from_column);
    } else {
        BY_ITEM(item, plane, to, from, rows, columns, to_row, to_column, from_row, from_column);
    }
}

/* Copy `size` positions of an axis and all of those after it. */
static void copy_axes(const Move *m, int axis, npy_intp size, char *to, const char *from) {
    const int rest = m->ndim - axis;
    if (rest == 1) {
        copy_plane(m, to, from, 1, size, 0, m->down[axis], 0, m->up[axis]);
    } else if (rest == 2) {
        copy_plane(m, to, from, size, m->sizes[axis + 1], m->down[axis], m->down[axis + 1], m->up[axis], m->up[axis + 1]);
    } else if (rest == 3 && m->up[axis] == m->item && m->up[axis + 1] != m->item && m->up[axis + 2] != m->item
               && m->down[axis + 2] == m->item) {
        for (npy_intp i = 0; i < m->sizes[axis + 1]; i++, to += m->down[axis + 1], from += m->up[axis + 1])
            copy_plane(m, to, from, size, m->sizes[axis + 2], m->down[axis], m->item, m->item, m->up[axis + 2]);
    } else {
        for (npy_intp i = 0; i < size; i++, to += m->down[axis], from += m->up[axis])
            copy_axes(m, axis + 1, m->sizes[axis + 1], to, from);
    }
}

static void move_part(const Move *m, npy_intp block) {
    npy_intp first = block % m->ranges * m->range, outer = block / m->ranges;
    char *to = m->to + first * m->down[m->axis];
    const char *from = m->from + first * m->up[m->axis];
    for (int i = m->axis - 1; i >= 0; i--) {
        to += outer % m->sizes[i] * m->down[i];
        from += outer % m->sizes[i] * m->up[i];
        outer /= m->sizes[i];
    }
    npy_intp left = m->sizes[m->axis] - first;
    copy_axes(m, m->axis, left < m->range ? left : m->range, to, from);
}

static void move_block(const Job *job, npy_intp block, char *memory) {
    const Moves *all = job->product;
    const Move *m = all->moves;
    if (all->are_alike) {
        for (npy_intp i = 0; i < all->count; i++) move_part(&m[i], block);
    } else {
        for (; block >= m->blocks; m++) block -= m->blocks;
        move_part(m, block);
    }
}

/* Read a target and what it gets, an array that broadcasts to it; raise a ValueError if there is no such copy. */
static void read_move(PyArrayObject *out, PyArrayObject *x, Move *m) {
    const int ndim = PyArray_NDIM(out), missing = ndim - PyArray_NDIM(x);
    m->to = PyArray_BYTES(out);
    m->from = PyArray_BYTES(x);
    m->item = PyArray_ITEMSIZE(out);
    const int is_simple = m->item == 1 || m->item == 2 || m->item == 4 || m->item == 8 || m->item == 16;
    if (missing < 0 || !is_simple || PyArray_ITEMSIZE(x) != m->item || !PyArray_ISWRITEABLE(out)
        || PyDataType_REFCHK(PyArray_DESCR(out)) || PyDataType_REFCHK(PyArray_DESCR(x)) || !PyArray_ISALIGNED(out)
        || !PyArray_ISALIGNED(x)) {
        PyErr_SetString(PyExc_ValueError, "expected an array that can be written, and one of as many axes and simple elements");
        return;
    }
    m->blocks = PyArray_SIZE(out) > 0;
    for (int axis = 0; axis < ndim; axis++) {
        const npy_intp size = PyArray_DIM(out, axis), own = axis < missing ? 1 : PyArray_DIM(x, axis - missing);
        npy_intp down = PyArray_STRIDE(out, axis), up = own == 1 ? 0 : PyArray_STRIDE(x, axis - missing);
        if (own != size && own != 1) {
            PyErr_SetString(PyExc_ValueError, "expected an array that broadcasts to the one that is written");
            return;
        }
        if (size < 2) continue;
        if (down < 0) { /* from the other end */
            m->to += (size - 1) * down;
            m->from += (size - 1) * up;
            down = -down, up = -up;
        }
        int at = m->ndim++;
        for (; at > 0 && m->down[at - 1] < down; at--) {
            m->sizes[at] = m->sizes[at - 1];
            m->down[at] = m->down[at - 1];
            m->up[at] = m->up[at - 1];
        }
        m->sizes[at] = size;
        m->down[at] = down;
        m->up[at] = up;
    }
}

/* Make neighbouring axes one where they can be, and choose the axis that is divided. */
static void divide_move(Move *m) {
    int last = 0;
    if (m->ndim == 0) m->sizes[m->ndim++] = 1; /* strides are 0 */
    for (int i = 1; i < m->ndim; i++) {
        if (m->down[last] == m->sizes[i] * m->down[i] && m->up[last] == m->sizes[i] * m->up[i]) {
            m->sizes[last] *= m->sizes[i];
        } else {
            m->sizes[++last] = m->sizes[i];
        }
        m->down[last] = m->down[i];
        m->up[last] = m->up[i];
    }
    m->ndim = last + 1;
    npy_intp below = m->item;
    m->axis = last;
    while (m->axis > 0 && below * m->sizes[m->axis] < MOVED) below *= m->sizes[m->axis--];
    m->range = below < MOVED ? MOVED / below : 1;
    if (m->range > TILE) m->range = m->range / TILE * TILE;
    m->ranges = (m->sizes[m->axis] + m->range - 1) / m->range;
    if (!m->blocks) return;
    m->blocks = m->ranges;
    for (int i = 0; i < m->axis; i++) m->blocks *= m->sizes[i];
}

/* Whether two copies have the same blocks, and the targets the same strides: their elements may be in turn. */
static int are_alike(const Move *m, const Move *n) {
    if (m->ndim != n->ndim || m->item != n->item || m->axis != n->axis) return 0;
    const size_t bytes = m->ndim * sizeof *m->sizes;
    return !memcmp(m->sizes, n->sizes, bytes) && !memcmp(m->down, n->down, bytes);
}

PyDoc_STRVAR(move_doc, "move(pairs, helpers)\n\n"
    "Copy arrays into others, which share no memory with each other and with what is copied.\n\n"
    "Args:\n"
    "  pairs: a list of tuples of two arrays: one that is written, and one that broadcasts to it, of the same dtype; its\n"
    "    elements have 1, 2, 4, 8 or 16 bytes.\n"
    "  helpers: how many threads may help.\n\n"
    "Raises:\n"
    "  MemoryError: there is no memory for the plan.\n"
    "  ValueError: two arrays do not fit.");

static PyObject *move(PyObject *module, PyObject *args) {
    PyObject *pairs;
    Moves all = {0};
    Job job = {.compute = move_block, .product = &all, .taken = 1};
    if (!PyArg_ParseTuple(args, "O!l", &PyList_Type, &pairs, &job.most_helpers)) return NULL;
    const npy_intp count = PyList_GET_SIZE(pairs);
    Move *moves = calloc(count ? count : 1, sizeof *moves);
    if (!moves) return PyErr_NoMemory();
    for (npy_intp i = 0; i < count; i++) {
        PyArrayObject *out, *x;
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        Move *m = &moves[all.count];
        if (!PyTuple_Check(pair)) PyErr_SetString(PyExc_TypeError, "expected a list of tuples");
        else if (PyArg_ParseTuple(pair, "O!O!", &PyArray_Type, &out, &PyArray_Type, &x)) read_move(out, x, m);
        if (PyErr_Occurred()) {
            free(moves);
            return NULL;
        }
        divide_move(m);
        job.blocks += m->blocks;
        all.count++;
    }
    all.moves = moves;
    all.are_alike = count > 1;
    for (npy_intp i = 1; i < count; i++) all.are_alike &= are_alike(&moves[0], &moves[i]);
    if (all.are_alike) job.blocks = moves[0].blocks;
    Py_BEGIN_ALLOW_THREADS
    share(&job);
    Py_END_ALLOW_THREADS
    free(moves);
    Py_RETURN_NONE;
}

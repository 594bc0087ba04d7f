/* Elements at positions along an axis, and how often each number occurs. */

typedef struct {
    const char *from, *positions;
    char *to;
    npy_intp before, size, count, after; /* the operand has (before, size, after) elements, the result `count` along the axis */
    npy_intp rows;                       /* of `before` and `count` together that a block has */
    int item, is_wide;                   /* whether positions have 64 bits */
    Shared outside;                      /* whether a position is out of range */
} Pick;

#define PICK(name, type, index)                                                                             \
    static int name(const Pick *p, npy_intp first, npy_intp end) {                                          \
        int is_outside = 0;                                                                                 \
        for (npy_intp row = first; row < end; row++) {                                                      \
            const index *at = (const index *)p->positions + row * p->after;                                 \
            const type *x = (const type *)p->from + row / p->count * p->size * p->after;                    \
            type *out = (type *)p->to + row * p->after;                                                     \
            for (npy_intp i = 0; i < p->after; i++) {                                                       \
                npy_intp k = at[i];                                                                         \
                k += k < 0 ? p->size : 0;                                                                   \
                const int is_inside = (size_t)k < (size_t)p->size;                                          \
                is_outside |= !is_inside;                                                                   \
                out[i] = x[(is_inside ? k : 0) * p->after + i];                                             \
            }                                                                                               \
        }                                                                                                   \
        return is_outside;                                                                                  \
    }
#define PICKS(item, type)                                                                                   \
    PICK(pick_##item##_by_32, type, int32_t)                                                                \
    PICK(pick_##item##_by_64, type, int64_t)
PICKS(1, uint8_t)
PICKS(2, uint16_t)
PICKS(4, uint32_t)
PICKS(8, uint64_t)
PICKS(16, Pair64)

#define PICK_BLOCK(name, item)                                                                              \
    static void name(const Job *job, npy_intp block, char *memory) {                                        \
        Pick *p = (Pick *)job->product;                                                                     \
        const npy_intp first = block * p->rows, all = p->before * p->count;                                 \
        const npy_intp end = first + p->rows < all ? first + p->rows : all;                                 \
        if (p->is_wide ? pick_##item##_by_64(p, first, end) : pick_##item##_by_32(p, first, end))           \
            shared_set(&p->outside, 1);                                                                     \
    }
PICK_BLOCK(pick_block_1, 1)
PICK_BLOCK(pick_block_2, 2)
PICK_BLOCK(pick_block_4, 4)
PICK_BLOCK(pick_block_8, 8)
PICK_BLOCK(pick_block_16, 16)

enum { PICKED = 1 << 13 /* the positions of a block */ };

PyDoc_STRVAR(pick_doc, "pick(x, positions, axis, out, helpers)\n\n"
    "Write the elements at positions along an axis, separate ones for each vector; negative ones count from the end.\n\n"
    "Args:\n"
    "  x, positions, out: contiguous arrays of equal sizes along all other axes; elements of 1, 2, 4, 8 or 16 bytes, and\n"
    "    positions of int32 or int64, of the shape of `out`.\n"
    "  axis: the axis, not negative.\n"
    "  helpers: how many threads may help.\n\n"
    "Returns:\n"
    "  Whether all positions are in range; otherwise the elements are undefined. None if the arrays are not as above.");

static PyObject *pick(PyObject *module, PyObject *args) {
    PyArrayObject *x, *positions, *out;
    int axis;
    Pick p = {.before = 1, .after = 1};
    Job job = {.product = &p, .taken = 1};
    if (!PyArg_ParseTuple(args, "O!O!iO!l", &PyArray_Type, &x, &PyArray_Type, &positions, &axis, &PyArray_Type, &out, &job.most_helpers))
        return NULL;
    const int ndim = PyArray_NDIM(x), item = (int)PyArray_ITEMSIZE(x);
    const int type = PyArray_TYPE(positions), is_position = PyTypeNum_ISSIGNED(type) && PyArray_ITEMSIZE(positions) >= 4;
    int fits = axis >= 0 && axis < ndim && PyArray_NDIM(positions) == ndim && PyArray_NDIM(out) == ndim && PyArray_ITEMSIZE(out) == item
        && PyTypeNum_ISINTEGER(type) && is_position && PyArray_ISNOTSWAPPED(positions) && PyArray_ISCARRAY_RO(x) && PyArray_ISCARRAY_RO(positions)
        && PyArray_ISCARRAY(out) && !PyDataType_REFCHK(PyArray_DESCR(x)) && !PyDataType_REFCHK(PyArray_DESCR(out));
    for (int i = 0; fits && i < ndim; i++) {
        fits &= PyArray_DIM(out, i) == PyArray_DIM(positions, i) && (i == axis || PyArray_DIM(x, i) == PyArray_DIM(out, i));
        if (i < axis) p.before *= PyArray_DIM(out, i);
        if (i > axis) p.after *= PyArray_DIM(out, i);
    }
    job.compute = item == 1 ? pick_block_1 : item == 2 ? pick_block_2 : item == 4 ? pick_block_4 : item == 8 ? pick_block_8
        : item == 16 ? pick_block_16 : NULL;
    if (!fits || !job.compute) Py_RETURN_NONE;
    if (!PyArray_SIZE(out)) Py_RETURN_TRUE;
    p.size = PyArray_DIM(x, axis);
    if (!p.size) Py_RETURN_FALSE;
    p.count = PyArray_DIM(out, axis);
    p.from = PyArray_BYTES(x);
    p.positions = PyArray_BYTES(positions);
    p.to = PyArray_BYTES(out);
    p.is_wide = PyArray_ITEMSIZE(positions) == 8;
    p.rows = PICKED / p.after + 1;
    job.blocks = (p.before * p.count + p.rows - 1) / p.rows;
    Py_BEGIN_ALLOW_THREADS
    share(&job);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(!shared_get(&p.outside));
}

/* How often each number from 0 on occurs. A thread counts in tables of its own, several in turn, since equal numbers that
   follow each other would wait for each other. */
enum { TABLES = 4, COUNTED = 1 << 14 /* the numbers of a block */, MOST_BINS = 1 << 13 };

typedef struct {
    const char *numbers;
    npy_intp size, bins;
    Shared *totals; /* of all threads */
    int is_wide;
} Counts;

#define COUNT(name, type)                                                                                   \
    static void name(const type *x, npy_intp n, uint32_t bins, uint32_t *tables) {                          \
        npy_intp i = 0;                                                                                     \
        for (; i + TABLES <= n; i += TABLES) {                                                              \
            for (int t = 0; t < TABLES; t++) {                                                              \
                const type k = x[i + t] < 0 ? 0 : x[i + t];                                                 \
                tables[t * (bins + 1) + (k < (type)bins ? (uint32_t)k : bins)]++;                           \
            }                                                                                               \
        }                                                                                                   \
        for (; i < n; i++) {                                                                                \
            const type k = x[i] < 0 ? 0 : x[i];                                                             \
            tables[k < (type)bins ? (uint32_t)k : bins]++;                                                  \
        }                                                                                                   \
    }
COUNT(count_32, int32_t)
COUNT(count_64, int64_t)

static void count_block(const Job *job, npy_intp block, char *memory) {
    const Counts *c = job->product;
    uint32_t *tables = (uint32_t *)memory;
    const npy_intp size = (c->size + job->blocks - 1) / job->blocks, first = block * size;
    const npy_intp n = c->size - first < size ? c->size - first : size;
    if (n <= 0) return;
    memset(tables, 0, TABLES * (c->bins + 1) * sizeof *tables);
    if (c->is_wide) count_64((const int64_t *)c->numbers + first, n, (uint32_t)c->bins, tables);
    else count_32((const int32_t *)c->numbers + first, n, (uint32_t)c->bins, tables);
    for (npy_intp k = 0; k < c->bins; k++) {
        uint32_t total = 0;
        for (int t = 0; t < TABLES; t++) total += tables[t * (c->bins + 1) + k];
        if (total) shared_add(&c->totals[k], total);
    }
}

PyDoc_STRVAR(count_doc, "count(numbers, totals, helpers)\n\n"
    "Count how often each number from 0 to before the size of `totals` occurs; negative numbers count as 0, and larger\n"
    "ones not.\n\n"
    "Args:\n"
    "  numbers: a contiguous array of int32 or int64, of fewer than 2**32 elements.\n"
    "  totals: a vector of intp, of 1 to 8192 zeros, to which the counts are added.\n"
    "  helpers: how many threads may help.\n\n"
    "Raises:\n"
    "  ValueError: the arrays are not as above.");

static PyObject *count(PyObject *module, PyObject *args) {
    PyArrayObject *numbers, *totals;
    Counts c = {0};
    Job job = {.compute = count_block, .product = &c, .taken = 1};
    if (!PyArg_ParseTuple(args, "O!O!l", &PyArray_Type, &numbers, &PyArray_Type, &totals, &job.most_helpers)) return NULL;
    c.size = PyArray_SIZE(numbers);
    c.bins = PyArray_SIZE(totals);
    const npy_intp item = PyArray_ITEMSIZE(numbers);
    if (!PyTypeNum_ISSIGNED(PyArray_TYPE(numbers)) || !PyTypeNum_ISINTEGER(PyArray_TYPE(numbers)) || (item != 4 && item != 8)
        || !PyArray_ISCARRAY_RO(numbers) || PyArray_TYPE(totals) != NPY_INTP || !PyArray_ISCARRAY(totals) || c.bins < 1
        || c.bins > MOST_BINS || (uint64_t)c.size >= (uint64_t)1 << 32)
        return PyErr_Format(PyExc_ValueError, "expected contiguous integers of 32 or 64 bits, and a vector of intp for their counts");
    c.numbers = PyArray_BYTES(numbers);
    c.is_wide = item == 8;
    c.totals = (Shared *)PyArray_BYTES(totals);
    job.blocks = c.size / (COUNTED + 16 * c.bins) + 1;
    job.buffers = (TABLES * (c.bins + 1) * (npy_intp)sizeof(uint32_t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!(job.memory = allocate_aligned(ALIGNMENT, job.buffers * (job.most_helpers + 1)))) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    share(&job);
    Py_END_ALLOW_THREADS
    free_aligned(job.memory);
    Py_RETURN_NONE;
}

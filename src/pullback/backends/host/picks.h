/* Elements at positions along an axis, sums at such positions, and how often each number occurs. */

enum { AS_THEY_ARE, WRAPPED, CLIPPED }; /* how positions out of range count: not; negative ones from the end; as the nearest */

typedef struct {
    const char *from, *positions;
    char *to;
    npy_intp before, size, count, after; /* the operand has (before, size, after) elements, the result `count` along the axis */
    npy_intp rows;                       /* of `before` and `count` together that a block has */
    int item, is_wide, range;            /* whether positions have 64 bits; how they count that are out of range */
    Shared outside;                      /* whether a position is out of range */
} Pick;

/* The position that a number stands for; -1 if it is out of range. */
INLINE npy_intp position_of(npy_intp k, npy_intp size, int range) {
    if (range == CLIPPED) return k < 0 ? 0 : k < size ? k : size - 1;
    k += range == WRAPPED && k < 0 ? size : 0;
    return (size_t)k < (size_t)size ? k : -1;
}

/* Those of a vector whose elements are side by side. */
#define PICK_RUN(range_)                                                                                    \
    for (npy_intp r = 0; r < rows; r++) {                                                                   \
        const npy_intp k = position_of(at[r], size, range_);                                                \
        is_outside |= k < 0;                                                                                \
        out[r] = x[k < 0 ? 0 : k];                                                                          \
    }
#define PICK(name, type, index)                                                                             \
    static int name(const Pick *p, npy_intp first, npy_intp end) {                                          \
        const npy_intp size = p->size, after = p->after;                                                    \
        const int range = p->range;                                                                         \
        int is_outside = 0;                                                                                 \
        npy_intp vector = first / p->count, left = p->count - first % p->count; /* a division takes as long as some picks */ \
        for (npy_intp row = first, rows; row < end; row += rows, vector++, left = p->count) { /* one, or some side by side */ \
            const index *at = (const index *)p->positions + row * after;                                    \
            const type *x = (const type *)p->from + vector * size * after;                                  \
            type *out = (type *)p->to + row * after;                                                        \
            rows = left < end - row ? left : end - row;                                                     \
            if (after == 1 && range == AS_THEY_ARE) PICK_RUN(AS_THEY_ARE)                                   \
            else if (after == 1 && range == WRAPPED) PICK_RUN(WRAPPED)                                      \
            else if (after == 1) PICK_RUN(CLIPPED)                                                          \
            else for (npy_intp r = 0; r < rows * after; r += after) {                                       \
                for (npy_intp i = 0; i < after; i++) {                                                      \
                    const npy_intp k = position_of(at[r + i], size, range);                                 \
                    is_outside |= k < 0;                                                                    \
                    out[r + i] = x[(k < 0 ? 0 : k) * after + i];                                            \
                }                                                                                           \
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

PyDoc_STRVAR(pick_doc, "pick(x, positions, axis, out, range, helpers)\n\n"
    "Write the elements at positions along an axis, separate ones for each vector.\n\n"
    "Args:\n"
    "  x, positions, out: contiguous arrays of equal sizes along all other axes; elements of 1, 2, 4, 8 or 16 bytes, and\n"
    "    positions of int32 or int64, of the shape of `out`.\n"
    "  axis: the axis, not negative.\n"
    "  range: 0; or 1 if negative positions count from the end; or 2 if those out of range count as the nearest.\n"
    "  helpers: how many threads may help.\n\n"
    "Returns:\n"
    "  Whether all positions are in range; otherwise the elements are undefined. None if the arrays are not as above.");

/* Whether an array has positions that the loops read. */
static int are_positions(PyArrayObject *positions) {
    const int type = PyArray_TYPE(positions);
    return PyTypeNum_ISINTEGER(type) && PyTypeNum_ISSIGNED(type) && PyArray_ITEMSIZE(positions) >= 4
        && PyArray_ISNOTSWAPPED(positions) && PyArray_ISCARRAY_RO(positions);
}

static PyObject *pick(PyObject *module, PyObject *args) {
    PyArrayObject *x, *positions, *out;
    int axis;
    Pick p = {.before = 1, .after = 1};
    Job job = {.product = &p, .taken = 1};
    if (!PyArg_ParseTuple(args, "O!O!iO!il", &PyArray_Type, &x, &PyArray_Type, &positions, &axis, &PyArray_Type, &out, &p.range, &job.most_helpers))
        return NULL;
    const int ndim = PyArray_NDIM(x), item = (int)PyArray_ITEMSIZE(x);
    int fits = axis >= 0 && axis < ndim && PyArray_NDIM(positions) == ndim && PyArray_NDIM(out) == ndim && PyArray_ITEMSIZE(out) == item
        && are_positions(positions) && PyArray_ISCARRAY_RO(x) && PyArray_ISCARRAY(out) && !PyDataType_REFCHK(PyArray_DESCR(x))
        && !PyDataType_REFCHK(PyArray_DESCR(out));
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

/* Sums at positions along an axis: each element of the updates is added where its position says, in row-major order of
   the updates. A thread has whole vectors, or some columns of all rows. Where the axis has few elements and there are many
   updates, a few equal parts of the updates are summed by themselves; the number of parts depends on the sizes alone. */
enum { SUMMED = 1 << 13 /* the updates of a block */, PARTS = 8, LEAST_OF_PARTS = 1 << 16, UPDATES_OF_AN_ELEMENT = 16, LEAST_COLUMNS = 16 };

typedef struct Sums {
    char *to;
    const char *positions, *updates;
    npy_intp before, size, count, after; /* the result has (before, size, after) elements, the updates `count` along the axis */
    npy_intp item, each;                 /* bytes of an element; the vectors or columns of a block */
    int is_wide, is_of_rows, range;      /* whether a position is that of a row of `after` elements */
    char *parts;                         /* the sums of all parts, or NULL */
    void (*sum)(const struct Sums *, npy_intp first, npy_intp end, npy_intp low, npy_intp high, char *to);
} Sums;

/* Add the updates from `first` to before `end`, numbered along the axes before and at that of the sums, in the columns
   from `low` to before `high`. */
#define SUM(name, type, index)                                                                              \
    static void name(const Sums *s, npy_intp first, npy_intp end, npy_intp low, npy_intp high, char *to) {  \
        const npy_intp size = s->size, after = s->after;                                                    \
        const int range = s->range;                                                                         \
        npy_intp vector = first / s->count, left = s->count - first % s->count;                             \
        for (npy_intp row = first, rows; row < end; row += rows, vector++, left = s->count) {               \
            const type *u = (const type *)s->updates + row * after;                                         \
            const index *at = (const index *)s->positions + row * (s->is_of_rows ? 1 : after);              \
            type *out = (type *)to + vector * size * after;                                                 \
            rows = left < end - row ? left : end - row;                                                     \
            if (s->is_of_rows) {                                                                            \
                for (npy_intp r = 0; r < rows; r++, u += after) {                                           \
                    const npy_intp k = position_of(at[r], size, range);                                     \
                    if (k < 0) continue;                                                                    \
                    type *line = out + k * after;                                                           \
                    EACH(i, high - low) line[low + i] += u[low + i];                                        \
                }                                                                                           \
            } else if (after == 1) {                                                                        \
                for (npy_intp r = 0; r < rows; r++) {                                                       \
                    const npy_intp k = position_of(at[r], size, range);                                     \
                    if (k >= 0) out[k] += u[r];                                                             \
                }                                                                                           \
            } else {                                                                                        \
                for (npy_intp r = 0; r < rows * after; r += after) {                                        \
                    for (npy_intp i = low; i < high; i++) {                                                 \
                        const npy_intp k = position_of(at[r + i], size, range);                             \
                        if (k >= 0) out[k * after + i] += u[r + i];                                         \
                    }                                                                                       \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }
#define SUMS(letter, type)                                                                                  \
    SUM(sum_##letter##_by_32, type, int32_t)                                                                \
    SUM(sum_##letter##_by_64, type, int64_t)
SUMS(f, float)
SUMS(d, double)
SUMS(4, uint32_t)
SUMS(8, uint64_t)

static void sum_vectors(const Job *job, npy_intp block, char *memory) {
    const Sums *s = job->product;
    const npy_intp first = block * s->each, end = first + s->each < s->before ? first + s->each : s->before;
    s->sum(s, first * s->count, end * s->count, 0, s->after, s->to);
}

static void sum_columns(const Job *job, npy_intp block, char *memory) {
    const Sums *s = job->product;
    const npy_intp low = block * s->each, high = low + s->each < s->after ? low + s->each : s->after;
    s->sum(s, 0, s->before * s->count, low, high, s->to);
}

static void sum_part(const Job *job, npy_intp block, char *memory) {
    const Sums *s = job->product;
    s->sum(s, s->count * block / PARTS, s->count * (block + 1) / PARTS, 0, 1, s->parts + block * s->size * s->item);
}

/* Begin the sums of parts with zeros that change no number that they are added to, and add them at the end. */
#define SUM_PARTS(name, type, nothing)                                                                      \
    static void begin_##name(type *parts, npy_intp n) { EACH(i, n) parts[i] = nothing; }                    \
    static void add_##name(type *out, const type *parts, npy_intp size) {                                   \
        for (npy_intp part = 0; part < PARTS; part++) EACH(i, size) out[i] += parts[part * size + i];       \
    }
SUM_PARTS(parts_f, float, -0.0f)
SUM_PARTS(parts_d, double, -0.0)
SUM_PARTS(parts_4, uint32_t, 0)
SUM_PARTS(parts_8, uint64_t, 0)
#define BY_TYPE(type, function, ...)                                                                        \
    do {                                                                                                    \
        if (type == NPY_FLOAT) function##_f((float *)__VA_ARGS__);                                          \
        else if (type == NPY_DOUBLE) function##_d((double *)__VA_ARGS__);                                   \
        else if (s.item == 4) function##_4((uint32_t *)__VA_ARGS__);                                        \
        else function##_8((uint64_t *)__VA_ARGS__);                                                         \
    } while (0)

PyDoc_STRVAR(add_at_doc, "add_at(out, positions, axis, updates, range, helpers)\n\n"
    "Add each element of the updates to the element of its vector along an axis that a position says; or each row of them\n"
    "to a row.\n\n"
    "Args:\n"
    "  out, updates: contiguous arrays of equal sizes along all other axes, of one dtype: floats or integers of 32 or 64\n"
    "    bits.\n"
    "  positions: a contiguous array of int32 or int64: of the shape of the updates, or a vector with one for each row,\n"
    "    if the axis is 0.\n"
    "  axis: the axis, not negative.\n"
    "  range: as in `pick`; nothing is added for positions out of range.\n"
    "  helpers: how many threads may help.\n\n"
    "Returns:\n"
    "  Whether it was done; not if the arrays are not as above.\n\n"
    "Raises:\n"
    "  MemoryError: there is no memory for the sums of parts.");

static PyObject *add_at(PyObject *module, PyObject *args) {
    PyArrayObject *out, *positions, *updates;
    int axis;
    Sums s = {.before = 1, .after = 1};
    Job job = {.product = &s, .taken = 1};
    if (!PyArg_ParseTuple(args, "O!O!iO!il", &PyArray_Type, &out, &PyArray_Type, &positions, &axis, &PyArray_Type, &updates, &s.range, &job.most_helpers))
        return NULL;
    const int ndim = PyArray_NDIM(out), type = PyArray_TYPE(out), own = PyArray_NDIM(positions);
    const npy_intp item = s.item = PyArray_ITEMSIZE(out);
    const int is_number = type == NPY_FLOAT || type == NPY_DOUBLE || (PyTypeNum_ISINTEGER(type) && (item == 4 || item == 8));
    s.is_of_rows = own == 1 && ndim > 1;
    int fits = axis >= 0 && axis < ndim && (s.is_of_rows ? axis == 0 : own == ndim) && PyArray_NDIM(updates) == ndim && is_number
        && PyArray_TYPE(updates) == type && are_positions(positions) && PyArray_ISCARRAY(out) && PyArray_ISCARRAY_RO(updates)
        && PyArray_ISNOTSWAPPED(out) && PyArray_ISNOTSWAPPED(updates);
    for (int i = 0; fits && i < ndim; i++) {
        fits &= i == axis || PyArray_DIM(out, i) == PyArray_DIM(updates, i);
        if (i < own) fits &= PyArray_DIM(positions, i) == PyArray_DIM(updates, i);
        if (i < axis) s.before *= PyArray_DIM(out, i);
        if (i > axis) s.after *= PyArray_DIM(out, i);
    }
    if (!fits) Py_RETURN_FALSE;
    s.size = PyArray_DIM(out, axis);
    s.count = PyArray_DIM(updates, axis);
    if (!PyArray_SIZE(updates) || !s.size) Py_RETURN_TRUE;
    s.to = PyArray_BYTES(out);
    s.positions = PyArray_BYTES(positions);
    s.updates = PyArray_BYTES(updates);
    s.is_wide = PyArray_ITEMSIZE(positions) == 8;
    s.sum = type == NPY_FLOAT ? (s.is_wide ? sum_f_by_64 : sum_f_by_32) : type == NPY_DOUBLE ? (s.is_wide ? sum_d_by_64 : sum_d_by_32)
        : item == 4 ? (s.is_wide ? sum_4_by_64 : sum_4_by_32) : s.is_wide ? sum_8_by_64 : sum_8_by_32;
    const int has_parts = s.before == 1 && s.after == 1 && s.count >= LEAST_OF_PARTS && s.size <= s.count / UPDATES_OF_AN_ELEMENT;
    if (has_parts) {
        job.compute = sum_part;
        job.blocks = PARTS;
        if (!(s.parts = malloc(PARTS * s.size * item))) return PyErr_NoMemory();
    } else if (s.before > 1 || s.after == 1) {
        job.compute = sum_vectors;
        s.each = SUMMED / (s.count * s.after) + 1;
        job.blocks = (s.before + s.each - 1) / s.each;
    } else {
        job.compute = sum_columns;
        s.each = s.after / (job.most_helpers + 1);
        s.each = s.each < LEAST_COLUMNS ? LEAST_COLUMNS : (s.each + LEAST_COLUMNS - 1) / LEAST_COLUMNS * LEAST_COLUMNS;
        job.blocks = (s.after + s.each - 1) / s.each;
    }
    Py_BEGIN_ALLOW_THREADS
    fenv_t environment;
    feholdexcept(&environment);
    if (has_parts) BY_TYPE(type, begin_parts, s.parts, PARTS * s.size);
    share(&job);
    if (has_parts) BY_TYPE(type, add_parts, s.to, (void *)s.parts, s.size);
    fesetenv(&environment);
    Py_END_ALLOW_THREADS
    free(s.parts);
    Py_RETURN_TRUE;
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

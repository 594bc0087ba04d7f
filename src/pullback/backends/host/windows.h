/* The largest, or least, element of each window of an array of floats, its position in the window, and sums of numbers
   at such positions. A row of windows, along the last axis, is computed at once, by one element of each after the other. */

enum { MOST_WINDOW_AXES = 8, ROWS_OF_WINDOWS = 1 << 12 /* the elements of a block, times those of a window */ };

struct Columns;

typedef struct Windowed {
    int ndim;
    npy_intp sizes[MOST_WINDOW_AXES], counts[MOST_WINDOW_AXES]; /* of the operand, and how many windows there are */
    npy_intp window[MOST_WINDOW_AXES], strides[MOST_WINDOW_AXES], low[MOST_WINDOW_AXES], steps[MOST_WINDOW_AXES];
    npy_intp elements;  /* of a window */
    npy_intp rows, row; /* of windows: how many a block has, and the windows of one */
    npy_intp all;       /* rows */
    char *operand, *result;
    int32_t *positions;
    npy_intp *offsets;      /* of each element of a window along all axes but the last, in the operand */
    int32_t *outer, *inner; /* of each element of a window its number along all axes but the last, and along the last */
    Loop *extreme;
    void (*compute)(const struct Windowed *, npy_intp row, struct Columns *);
    int largest;
    int are_columns; /* whether no two elements of a window are in the same row of elements, and whole rows are in windows */
    int are_tiles;   /* whether each element is in one window */
} Windowed;

/* Where a row of windows begins along each axis but the last, in the operand. Return the index in the operand of the row
   of elements there, if all elements of the windows are inside along these axes; else -1. */
static npy_intp begin_row(const Windowed *w, npy_intp row, npy_intp *start) {
    npy_intp index = 0, factor = 1;
    int is_inside = 1;
    for (int i = w->ndim - 2; i >= 0; i--) {
        const npy_intp count = w->counts[i];
        const npy_intp rest = row <= UINT32_MAX ? (uint32_t)row / (uint32_t)count : row / count; /* the former is quicker */
        start[i] = (row - rest * count) * w->strides[i] - w->low[i];
        row = rest;
        is_inside &= start[i] >= 0 && start[i] + (w->window[i] - 1) * w->steps[i] < w->sizes[i];
        index += start[i] * factor;
        factor *= w->sizes[i];
    }
    return is_inside ? index * w->sizes[w->ndim - 1] : -1;
}

/* Find an element of the windows of a row: its number along the axes but the last is `number`. Return the index in the
   operand of the row of elements that it is in; -1 if it is outside. */
static npy_intp row_of_element(const Windowed *w, npy_intp number, const npy_intp *start) {
    npy_intp index = 0, factor = 1;
    for (int i = w->ndim - 2; i >= 0; i--) {
        const npy_intp at = start[i] + number % w->window[i] * w->steps[i];
        number /= w->window[i];
        if (at < 0 || at >= w->sizes[i]) return -1;
        index += at * factor;
        factor *= w->sizes[i];
    }
    return index * w->sizes[w->ndim - 1];
}

/* The windows of a row whose element `number` along the last axis is inside: from `first` to before `end`; the first of
   them is `from` in the row of elements. */
static void inside_of_row(const Windowed *w, npy_intp number, npy_intp *first, npy_intp *end, npy_intp *from) {
    const int last = w->ndim - 1;
    const npy_intp offset = number * w->steps[last] - w->low[last], stride = w->strides[last], most = w->sizes[last] - 1 - offset;
    *first = offset < 0 ? (-offset + stride - 1) / stride : 0;
    *end = most < 0 ? 0 : most / stride + 1;
    if (*end > w->counts[last]) *end = w->counts[last];
    *from = *first * stride + offset;
}

#define EACH_ELEMENT(w, row, start, ...)                                                                    \
    do {                                                                                                    \
        npy_intp start[MOST_WINDOW_AXES];                                                                   \
        const npy_intp along = w->window[w->ndim - 1];                                                      \
        const npy_intp base = begin_row(w, row, start), outers = w->elements / along;                       \
        for (npy_intp outer = 0; outer < outers; outer++) {                                                 \
            const npy_intp at = base < 0 ? row_of_element(w, outer, start) : base + w->offsets[outer];      \
            for (npy_intp k = 0; at >= 0 && k < along; k++) {                                               \
                npy_intp first, end, from;                                                                  \
                inside_of_row(w, k, &first, &end, &from);                                                   \
                const npy_intp number = outer * along + k;                                                  \
                if (first < end) __VA_ARGS__                                                                       \
            }                                                                                               \
        }                                                                                                   \
    } while (0)

enum { PACKED = 256, FEW_ROWS = 64 };

/* The rows of elements in which those of a row of windows are, if these are columns. */
typedef struct Columns {
    npy_intp row, left; /* of windows; how many next rows have their elements at the same distance from those of this one */
    npy_intp count;     /* of rows of elements */
    npy_intp at[FEW_ROWS];     /* where they begin in the operand */
    int32_t numbers[FEW_ROWS]; /* the number in a window of each of their elements */
} Columns;

/* Find the rows of elements of a row of windows; `c` may have those of another. Return how many there are. */
static npy_intp rows_of_columns(const Windowed *w, npy_intp row, Columns *c) {
    const int along = w->ndim - 2;
    if (c->left > 0 && row == c->row + 1) {
        const npy_intp distance = w->strides[along] * w->row;
        for (npy_intp k = 0; k < c->count; k++) c->at[k] += distance;
        c->left--;
    } else {
        npy_intp start[MOST_WINDOW_AXES];
        const npy_intp base = begin_row(w, row, start);
        c->count = 0;
        for (npy_intp k = 0; k < w->elements; k++) {
            c->at[c->count] = base < 0 ? row_of_element(w, k, start) : base + w->offsets[k];
            c->numbers[c->count] = (int32_t)k;
            c->count += c->at[c->count] >= 0;
        }
        c->left = 0;
        if (base >= 0 && along >= 0 && w->counts[along] > 1) { /* the next windows along this axis, while all elements are inside */
            const npy_intp rest = w->sizes[along] - 1 - (start[along] + (w->window[along] - 1) * w->steps[along]);
            const npy_intp fit = rest / w->strides[along], others = w->counts[along] - 1 - row % w->counts[along];
            c->left = fit < others ? fit : others;
        }
    }
    c->row = row;
    return c->count;
}

/* The same of `count` rows, at least one, by columns: extremes, the numbers of the first extremes; and a number of each
   column in the row with the column's position, and zeros in the others, or added to the row. */
#define COLUMNS(letter, type, bits)                                                                         \
    WIDE static void columns_extreme_##letter(const type *x, const npy_intp *at, npy_intp count, npy_intp n, int largest, type *result) { \
        bits *out = (bits *)result;                                                                         \
        if (count == 1) memcpy(out, x + at[0], n * sizeof(type));                                           \
        for (npy_intp k = 1; k < count; k++) {                                                              \
            const type *p = k == 1 ? x + at[0] : result, *q = x + at[k];                                    \
            if (largest) {                                                                                  \
                EACH(i, n) {                                                                                \
                    const type x = p[i], y = q[i];                                                          \
                    const bits a = ((const bits *)p)[i], b = ((const bits *)q)[i];                          \
                    EXTREME_OF(x, y, a, b, bits, >, (b & (a | ~same)))                                      \
                }                                                                                           \
            } else {                                                                                        \
                EACH(i, n) {                                                                                \
                    const type x = p[i], y = q[i];                                                          \
                    const bits a = ((const bits *)p)[i], b = ((const bits *)q)[i];                          \
                    EXTREME_OF(x, y, a, b, bits, <, (b | (a & same)))                                       \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    /* The best so far, its bits, and its number, after one more element: the bits are those of `columns_extreme`. */ \
    static inline bits better_of_##letter(bits a, bits b, int largest, int32_t number, int32_t *position) { \
        union { bits bits; type number; } x = {.bits = a}, y = {.bits = b};                                 \
        const bits wins = -(bits)((largest ? y.number > x.number : y.number < x.number) | ((y.number != y.number) & (x.number == x.number))); \
        const bits same = -(bits)(x.number == y.number);                                                    \
        *position = wins ? number : *position;                                                              \
        return (b & wins) | ((largest ? a & (b | ~same) : a | (b & same)) & ~wins);                         \
    }                                                                                                       \
    static inline void columns_first_of_##letter(const type *x, const npy_intp *at, const int32_t *numbers, npy_intp count, npy_intp n, \
                                                 int largest, type *result, int32_t *positions) {           \
        const int32_t first = numbers[0];                                                                   \
        bits *best = (bits *)result;                                                                        \
        const bits *p = (const bits *)(x + at[0]);                                                          \
        if (count == 1) EACH(i, n) {                                                                        \
            best[i] = p[i];                                                                                 \
            positions[i] = first;                                                                           \
        }                                                                                                   \
        npy_intp k = 1;                                                                                     \
        if (count >= 4) { /* so windows of two by two take one pass */                                      \
            const bits *q = (const bits *)(x + at[1]), *r = (const bits *)(x + at[2]), *s = (const bits *)(x + at[3]); \
            const int32_t second = numbers[1], third = numbers[2], fourth = numbers[3];                     \
            EACH(i, n) {                                                                                    \
                int32_t position = first;                                                                   \
                bits b = better_of_##letter(p[i], q[i], largest, second, &position);                        \
                b = better_of_##letter(b, r[i], largest, third, &position);                                 \
                best[i] = better_of_##letter(b, s[i], largest, fourth, &position);                          \
                positions[i] = position;                                                                    \
            }                                                                                               \
            k = 4;                                                                                          \
        }                                                                                                   \
        for (; k < count; k++) {                                                                            \
            const bits *so_far = k == 1 ? p : best, *q = (const bits *)(x + at[k]);                         \
            const int32_t number = numbers[k];                                                              \
            EACH(i, n) {                                                                                    \
                int32_t position = k == 1 ? first : positions[i];                                           \
                best[i] = better_of_##letter(so_far[i], q[i], largest, number, &position);                  \
                positions[i] = position;                                                                    \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
    WIDE static void columns_first_##letter(const type *x, const npy_intp *at, const int32_t *numbers, npy_intp count, npy_intp n, \
                                            int largest, type *best, int32_t *positions) {                  \
        if (largest) columns_first_of_##letter(x, at, numbers, count, n, 1, best, positions);               \
        else columns_first_of_##letter(x, at, numbers, count, n, 0, best, positions);                       \
    }                                                                                                       \
    WIDE static void columns_put_##letter(type *x, const npy_intp *at, const int32_t *numbers, npy_intp count, npy_intp n, \
                                          const type *added, const int32_t *positions, int are_tiles) {     \
        for (npy_intp k = 0; k < count; k++) {                                                              \
            type *out = x + at[k];                                                                          \
            const int32_t number = numbers[k];                                                              \
            if (are_tiles) EACH(i, n) out[i] = positions[i] == number ? added[i] : 0;                       \
            else EACH(i, n) out[i] += positions[i] == number ? added[i] : 0;                                \
        }                                                                                                   \
    }
COLUMNS(f, float, bits_f)
COLUMNS(d, double, bits_d)

#define WINDOWS(letter, type, bits, lowest, highest)                                                        \
    /* Every so many elements side by side: quicker than a loop in vectors that reads them where they are. */ \
    static const type *packed_##letter(const type *x, npy_intp stride, npy_intp n, type *out) {             \
        if (stride == 1) return x;                                                                          \
        for (npy_intp i = 0; i < n; i++) out[i] = x[i * stride];                                            \
        return out;                                                                                         \
    }                                                                                                       \
    static void extremes_##letter(const Windowed *w, npy_intp row, Columns *c) {                            \
        type *out = (type *)w->result + row * w->row, some[PACKED];                                         \
        const npy_intp side_by_side[3] = {sizeof(type), sizeof(type), sizeof(type)}, stride = w->strides[w->ndim - 1]; \
        const type none = w->largest ? lowest : highest;                                                    \
        if (w->are_columns) {                                                                               \
            const npy_intp count = rows_of_columns(w, row, c);                                              \
            if (count) {                                                                                    \
                columns_extreme_##letter((const type *)w->operand, c->at, count, w->row, w->largest, out);  \
                return;                                                                                     \
            }                                                                                               \
        }                                                                                                   \
        for (npy_intp i = 0; i < w->row; i++) out[i] = none;                                                \
        EACH_ELEMENT(w, row, start, {                                                                       \
            (void)number;                                                                                   \
            for (npy_intp i = first; i < end; i += PACKED) {                                                \
                const npy_intp n = end - i < PACKED ? end - i : PACKED;                                     \
                const type *x = packed_##letter((const type *)w->operand + at + from + (i - first) * stride, stride, n, some); \
                char *arguments[3] = {(char *)(out + i), (char *)x, (char *)(out + i)};                     \
                w->extreme(arguments, &n, side_by_side, NULL);                                              \
            }                                                                                               \
        });                                                                                                 \
    }                                                                                                       \
    /* Compare elements of windows with the best so far, whose positions are `none` where there is none. */ \
    WIDE static void better_##letter(const bits *x, npy_intp n, int largest, int32_t number, int32_t none, bits *best, \
                                     int32_t *positions) {                                                  \
        EACH(i, n) {                                                                                        \
            int32_t position = positions[i] == none ? number : positions[i];                                \
            best[i] = better_of_##letter(best[i], x[i], largest, number, &position);                        \
            positions[i] = position;                                                                        \
        }                                                                                                   \
    }                                                                                                       \
    static void find_##letter(const Windowed *w, npy_intp row, Columns *c) {                                \
        const npy_intp stride = w->strides[w->ndim - 1];                                                    \
        const int32_t none = (int32_t)w->elements;                                                          \
        int32_t *positions = w->positions + row * w->row;                                                   \
        type some[PACKED], buffer[PACKED], *result = w->result ? (type *)w->result + row * w->row : NULL;   \
        const npy_intp count = w->are_columns ? rows_of_columns(w, row, c) : 0;                             \
        for (npy_intp low = 0; low < w->row; low += PACKED) {                                               \
            const npy_intp high = w->row - low < PACKED ? w->row : low + PACKED;                            \
            type *best = result ? result + low : buffer;                                                    \
            if (count) {                                                                                    \
                columns_first_##letter((const type *)w->operand + low, c->at, c->numbers, count, high - low, w->largest, best, positions + low); \
                continue;                                                                                   \
            }                                                                                               \
            for (npy_intp i = low; i < high; i++) positions[i] = none;                                      \
            for (npy_intp i = 0; i < high - low; i++) best[i] = w->largest ? lowest : highest;              \
            EACH_ELEMENT(w, row, start, {                                                                   \
                const npy_intp begin = first > low ? first : low, n = (end < high ? end : high) - begin;    \
                if (n > 0) {                                                                                \
                    const type *x = (const type *)w->operand + at + from + (begin - first) * stride;        \
                    better_##letter((const bits *)packed_##letter(x, stride, n, some), n, w->largest, (int32_t)number, none, \
                                    (bits *)best + begin - low, positions + begin);                         \
                }                                                                                           \
            });                                                                                             \
        }                                                                                                   \
    }                                                                                                       \
    /* Add each number to the element of its window that has its position. */                               \
    static void put_##letter(const Windowed *w, npy_intp row, Columns *c) {                                 \
        const type *numbers = (const type *)w->result + row * w->row;                                       \
        const int32_t *positions = w->positions + row * w->row;                                             \
        if (w->are_columns) {                                                                               \
            const npy_intp count = rows_of_columns(w, row, c);                                              \
            columns_put_##letter((type *)w->operand, c->at, c->numbers, count, w->row, numbers, positions, w->are_tiles); \
            return;                                                                                         \
        }                                                                                                   \
        const int last = w->ndim - 1;                                                                       \
        const npy_intp stride = w->strides[last], low = w->low[last], step = w->steps[last], size = w->sizes[last]; \
        npy_intp start[MOST_WINDOW_AXES], rows[FEW_ROWS];                                                   \
        const npy_intp outers = w->elements / w->window[last];                                              \
        const npy_intp base = begin_row(w, row, start);                                                     \
        for (npy_intp k = 0; k < outers && k < FEW_ROWS; k++)                                               \
            rows[k] = base < 0 ? row_of_element(w, k, start) : base + w->offsets[k];                        \
        for (npy_intp i = 0; i < w->row; i++) {                                                             \
            if (positions[i] < 0 || positions[i] >= w->elements) continue;                                  \
            const int32_t outer = w->outer[positions[i]];                                                   \
            const npy_intp at = outer < FEW_ROWS ? rows[outer] : row_of_element(w, outer, start);           \
            const npy_intp from = i * stride - low + w->inner[positions[i]] * step;                         \
            if (at >= 0 && from >= 0 && from < size) ((type *)w->operand)[at + from] += numbers[i];         \
        }                                                                                                   \
    }
WINDOWS(f, float, bits_f, -INFINITY, INFINITY)
WINDOWS(d, double, bits_d, -INFINITY, INFINITY)

static void compute_windows(const Job *job, npy_intp block, char *memory) {
    const Windowed *w = job->product;
    const npy_intp first = block * w->rows, end = first + w->rows < w->all ? first + w->rows : w->all;
    Columns columns;
    columns.left = 0;
    for (npy_intp row = first; row < end; row++) w->compute(w, row, &columns);
}

PyDoc_STRVAR(windows_doc, "windows(kind, operand, result, positions, geometry, largest, helpers)\n\n"
    "Compute with the windows of an array of floats of 32 or 64 bits.\n\n"
    "Args:\n"
    "  kind: \"extremes\": write the largest or least element of each window to `result`; \"find\": write its position,\n"
    "    and itself to `result` if that is not None; \"put\": add each element of `result` to the element of `operand` at\n"
    "    the position in its window; \"fill\": write it there, and zeros to the other elements, where windows are tiles of\n"
    "    the operand, and columns.\n"
    "  operand, result: contiguous arrays of one dtype and of as many axes, 1 to 8; \"find\" takes a result or None.\n"
    "  positions: a contiguous array of int32, of as many elements as there are windows; None for \"extremes\".\n"
    "  geometry: for each axis the number of windows; the sizes of a window; the distance from one to the next; the\n"
    "    elements before the first that it begins outside; and the distance from an element of a window to the next.\n"
    "  largest: whether the largest elements are meant.\n"
    "  helpers: how many threads may help.\n\n"
    "Raises:\n"
    "  ValueError: the arrays are not as above.");

static int is_plain(PyObject *object, int type) {
    return PyArray_Check(object) && PyArray_TYPE((PyArrayObject *)object) == type && PyArray_ISCARRAY_RO((PyArrayObject *)object);
}

static int read_windows(Windowed *w, PyArrayObject *operand, PyObject *result, PyObject *positions, PyObject *geometry) {
    npy_intp all = 1;
    w->ndim = PyArray_NDIM(operand);
    w->elements = 1;
    if (w->ndim < 1 || w->ndim > MOST_WINDOW_AXES || PyTuple_GET_SIZE(geometry) != w->ndim) return 0;
    for (int i = 0; i < w->ndim; i++) {
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(geometry, i), "nnnnn", &w->counts[i], &w->window[i], &w->strides[i], &w->low[i], &w->steps[i]))
            return 0;
        if (w->counts[i] < 1 || w->window[i] < 1 || w->strides[i] < 1 || w->steps[i] < 1) return 0;
        w->sizes[i] = PyArray_DIM(operand, i);
        w->elements *= w->window[i];
        all *= w->counts[i];
    }
    const int last = w->ndim - 1;
    w->are_tiles = 1;
    for (int i = 0; i < w->ndim; i++)
        w->are_tiles &= w->strides[i] == w->window[i] && w->steps[i] == 1 && w->low[i] == 0 && w->counts[i] * w->window[i] == w->sizes[i];
    w->are_columns = w->elements <= FEW_ROWS && w->window[last] == 1 && w->strides[last] == 1 && w->low[last] == 0
        && w->counts[last] == w->sizes[last];
    w->row = w->counts[last];
    w->all = all / w->row;
    w->operand = PyArray_BYTES(operand);
    if (w->elements > INT32_MAX) return 0;
    if (result != Py_None) {
        if (!is_plain(result, PyArray_TYPE(operand)) || PyArray_SIZE((PyArrayObject *)result) != all) return 0;
        w->result = PyArray_BYTES((PyArrayObject *)result);
    }
    if (positions != Py_None) {
        if (!is_plain(positions, NPY_INT32) || PyArray_SIZE((PyArrayObject *)positions) != all) return 0;
        w->positions = (int32_t *)PyArray_BYTES((PyArrayObject *)positions);
    }
    return 1;
}

static PyObject *windows(PyObject *module, PyObject *args) {
    const char *kind;
    PyArrayObject *operand;
    PyObject *result, *positions, *geometry;
    Windowed w = {0};
    Job job = {.compute = compute_windows, .product = &w, .taken = 1};
    if (!PyArg_ParseTuple(args, "sO!OOO!pl", &kind, &PyArray_Type, &operand, &result, &positions, &PyTuple_Type, &geometry, &w.largest, &job.most_helpers))
        return NULL;
    const int is_single = PyArray_TYPE(operand) == NPY_FLOAT, fills = !strcmp(kind, "fill"), puts = fills || !strcmp(kind, "put");
    const int finds = !strcmp(kind, "find");
    if (!read_windows(&w, operand, result, positions, geometry) || !is_plain((PyObject *)operand, is_single ? NPY_FLOAT : NPY_DOUBLE)
        || (!finds && !w.result) || ((finds || puts) && !w.positions) || (fills && !(w.are_tiles && w.are_columns))
        || !PyArray_ISWRITEABLE((PyArrayObject *)(puts ? (PyObject *)operand : finds ? positions : result))
        || (finds && w.result && !PyArray_ISWRITEABLE((PyArrayObject *)result))) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "expected contiguous arrays of floats, and the geometry of their windows");
        return NULL;
    }
    w.are_tiles &= fills; /* else numbers are added */
    w.compute = finds ? is_single ? find_f : find_d : puts ? is_single ? put_f : put_d : is_single ? extremes_f : extremes_d;
    w.extreme = w.largest ? is_single ? maximum_f : maximum_d : is_single ? minimum_f : minimum_d;
    w.rows = ROWS_OF_WINDOWS / (w.row * w.elements) + 1;
    if (puts && !fills) { /* a thread has all windows that may have an element: those of one position on axes of single elements */
        w.rows = w.all;
        for (int i = 0; i < w.ndim - 1 && w.window[i] == 1 && w.strides[i] == 1 && w.low[i] == 0 && w.counts[i] == w.sizes[i]; i++)
            w.rows /= w.counts[i];
    }
    job.blocks = (w.all + w.rows - 1) / w.rows;
    const npy_intp outers = w.elements / w.window[w.ndim - 1], first[MOST_WINDOW_AXES] = {0};
    w.offsets = malloc(outers * sizeof *w.offsets);
    w.outer = puts ? malloc(2 * w.elements * sizeof *w.outer) : NULL;
    if (!w.offsets || (puts && !w.outer)) {
        free(w.offsets);
        free(w.outer);
        return PyErr_NoMemory();
    }
    for (npy_intp k = 0; k < outers; k++) w.offsets[k] = row_of_element(&w, k, first); /* used where all are inside */
    if (puts) {
        w.inner = w.outer + w.elements;
        for (npy_intp i = 0; i < w.elements; i++) {
            w.outer[i] = (int32_t)(i / w.window[w.ndim - 1]);
            w.inner[i] = (int32_t)(i % w.window[w.ndim - 1]);
        }
    }
    Py_BEGIN_ALLOW_THREADS
    fenv_t environment;
    feholdexcept(&environment);
    share(&job);
    fesetenv(&environment);
    Py_END_ALLOW_THREADS
    free(w.outer);
    free(w.offsets);
    Py_RETURN_NONE;
}

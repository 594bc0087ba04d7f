/* The largest, or least, element of each window of an array of floats, its position in the window, and sums of numbers
   at such positions. A row of windows, along the last axis, is computed at once, by one element of each after the other. */

enum { MOST_WINDOW_AXES = 8, ROWS_OF_WINDOWS = 1 << 12 /* the elements of a block, times those of a window */ };

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
    void (*compute)(const struct Windowed *, npy_intp row);
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

/* The rows of elements in which those of a row of windows are, if these are columns: where they begin in the operand, and
   the number in a window of each of their elements. Return how many there are. */
static npy_intp rows_of_columns(const Windowed *w, npy_intp row, npy_intp *at, int32_t *numbers) {
    npy_intp start[MOST_WINDOW_AXES], count = 0;
    const npy_intp base = begin_row(w, row, start);
    for (npy_intp k = 0; k < w->elements; k++) {
        at[count] = base < 0 ? row_of_element(w, k, start) : base + w->offsets[k];
        numbers[count] = (int32_t)k;
        count += at[count] >= 0;
    }
    return count;
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
    WIDE static void columns_first_##letter(const type *x, const npy_intp *at, const int32_t *numbers, npy_intp count, npy_intp n, \
                                            int largest, type *best, int32_t *positions) {                  \
        const int32_t first = numbers[0];                                                                   \
        if (count == 1) EACH(i, n) positions[i] = first;                                                    \
        for (npy_intp k = 1; k < count; k++) {                                                              \
            const type *p = k == 1 ? x + at[0] : best, *q = x + at[k];                                      \
            const int32_t number = numbers[k];                                                              \
            EACH(i, n) {                                                                                    \
                const type y = q[i], b = p[i];                                                              \
                const int wins = (largest ? y > b : y < b) | ((y != y) & (b == b));                         \
                best[i] = wins ? y : b;                                                                     \
                positions[i] = wins ? number : k == 1 ? first : positions[i];                               \
            }                                                                                               \
        }                                                                                                   \
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

#define WINDOWS(letter, type, lowest, highest)                                                              \
    /* Every so many elements side by side: quicker than a loop in vectors that reads them where they are. */ \
    static const type *packed_##letter(const type *x, npy_intp stride, npy_intp n, type *out) {             \
        if (stride == 1) return x;                                                                          \
        for (npy_intp i = 0; i < n; i++) out[i] = x[i * stride];                                            \
        return out;                                                                                         \
    }                                                                                                       \
    static void extremes_##letter(const Windowed *w, npy_intp row) {                                        \
        type *out = (type *)w->result + row * w->row, some[PACKED];                                         \
        const npy_intp side_by_side[3] = {sizeof(type), sizeof(type), sizeof(type)}, stride = w->strides[w->ndim - 1]; \
        const type none = w->largest ? lowest : highest;                                                    \
        if (w->are_columns) {                                                                               \
            npy_intp at[FEW_ROWS];                                                                          \
            int32_t numbers[FEW_ROWS];                                                                      \
            const npy_intp count = rows_of_columns(w, row, at, numbers);                                    \
            if (count) {                                                                                    \
                columns_extreme_##letter((const type *)w->operand, at, count, w->row, w->largest, out);     \
                return;                                                                                     \
            }                                                                                               \
        }                                                                                                   \
        for (npy_intp i = 0; i < w->row; i++) out[i] = none;                                                \
        EACH_ELEMENT(w, row, start, {                                                                       \
            (void)number;                                                                                   \
            for (npy_intp i = first; i < end; i += PACKED) {                                                \
                const npy_intp n = end - i < PACKED ? end - i : PACKED;                                     \
                const type *x = packed_##letter((const type *)w->operand + at + from + (i - first) * stride, stride, n, some); \
                char *arguments[3] = {(char *)x, (char *)(out + i), (char *)(out + i)};                     \
                w->extreme(arguments, &n, side_by_side, NULL);                                              \
            }                                                                                               \
        });                                                                                                 \
    }                                                                                                       \
    /* Compare elements of windows with the best so far, whose positions are `none` where there is none. */ \
    WIDE static void better_##letter(const type *x, npy_intp n, int largest, int32_t number, int32_t none, type *best, \
                                     int32_t *positions) {                                                  \
        EACH(i, n) {                                                                                        \
            const type y = x[i], b = best[i];                                                               \
            const int wins = ((largest ? y > b : y < b) | ((y != y) & (b == b)) | (positions[i] == none));  \
            best[i] = wins ? y : b;                                                                         \
            positions[i] = wins ? number : positions[i];                                                    \
        }                                                                                                   \
    }                                                                                                       \
    static void find_##letter(const Windowed *w, npy_intp row) {                                            \
        const npy_intp stride = w->strides[w->ndim - 1];                                                    \
        const int32_t none = (int32_t)w->elements;                                                          \
        if (w->are_columns) {                                                                               \
            npy_intp at[FEW_ROWS];                                                                          \
            int32_t numbers[FEW_ROWS], *positions = w->positions + row * w->row;                            \
            const npy_intp count = rows_of_columns(w, row, at, numbers);                                    \
            for (npy_intp low = 0; count && low < w->row; low += PACKED) {                                  \
                const npy_intp n = w->row - low < PACKED ? w->row - low : PACKED;                           \
                type best[PACKED];                                                                          \
                columns_first_##letter((const type *)w->operand + low, at, numbers, count, n, w->largest, best, positions + low); \
            }                                                                                               \
            if (count) return;                                                                              \
        }                                                                                                   \
        for (npy_intp low = 0; low < w->row; low += PACKED) {                                               \
            const npy_intp high = w->row - low < PACKED ? w->row : low + PACKED;                            \
            type best[PACKED] = {0}, some[PACKED];                                                          \
            int32_t *positions = w->positions + row * w->row;                                               \
            for (npy_intp i = low; i < high; i++) positions[i] = none;                                      \
            EACH_ELEMENT(w, row, start, {                                                                   \
                const npy_intp begin = first > low ? first : low, n = (end < high ? end : high) - begin;    \
                if (n > 0) {                                                                                \
                    const type *x = (const type *)w->operand + at + from + (begin - first) * stride;        \
                    better_##letter(packed_##letter(x, stride, n, some), n, w->largest, (int32_t)number, none, \
                                    best + begin - low, positions + begin);                                 \
                }                                                                                           \
            });                                                                                             \
        }                                                                                                   \
    }                                                                                                       \
    /* Add each number to the element of its window that has its position. */                               \
    static void put_##letter(const Windowed *w, npy_intp row) {                                             \
        const type *numbers = (const type *)w->result + row * w->row;                                       \
        const int32_t *positions = w->positions + row * w->row;                                             \
        if (w->are_columns) {                                                                               \
            npy_intp at[FEW_ROWS];                                                                          \
            int32_t elements[FEW_ROWS];                                                                     \
            const npy_intp count = rows_of_columns(w, row, at, elements);                                   \
            columns_put_##letter((type *)w->operand, at, elements, count, w->row, numbers, positions, w->are_tiles); \
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
WINDOWS(f, float, -INFINITY, INFINITY)
WINDOWS(d, double, -INFINITY, INFINITY)

static void compute_windows(const Job *job, npy_intp block, char *memory) {
    const Windowed *w = job->product;
    const npy_intp first = block * w->rows, end = first + w->rows < w->all ? first + w->rows : w->all;
    for (npy_intp row = first; row < end; row++) w->compute(w, row);
}

PyDoc_STRVAR(windows_doc, "windows(kind, operand, result, positions, geometry, largest, helpers)\n\n"
    "Compute with the windows of an array of floats of 32 or 64 bits.\n\n"
    "Args:\n"
    "  kind: \"extremes\": write the largest or least element of each window to `result`; \"find\": write its position;\n"
    "    \"put\": add each element of `result` to the element of `operand` at the position in its window; \"fill\": write it\n"
    "    there, and zeros to the other elements, where windows are tiles of the operand, and columns.\n"
    "  operand, result: contiguous arrays of one dtype and of as many axes, 1 to 8; \"find\" takes None as result.\n"
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
        || !PyArray_ISWRITEABLE((PyArrayObject *)(puts ? (PyObject *)operand : finds ? positions : result))) {
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

/* Convolutions of arrays whose features are last, as products of matrices: a row for each window, by the kernel. Rows of
   windows are copied for a block at a time, whose size stays in a core's cache, and multiplied by the BLAS that NumPy brings.

   The kernel's cotangent is the product of the transposed rows by the result's cotangent. Its rows are divided into equal
   parts, whose products are added in order; the number of parts depends on the sizes alone. */

enum { MOST_SPACE_AXES = 3, WINDOWS_COPIED = 1 << 17 /* bytes of a block */, PRODUCTS_ADDED = 8 };

typedef struct {
    int ndim, is_transposed;
    npy_intp sizes[MOST_SPACE_AXES], counts[MOST_SPACE_AXES], window[MOST_SPACE_AXES];
    npy_intp strides[MOST_SPACE_AXES], low[MOST_SPACE_AXES], steps[MOST_SPACE_AXES];
    npy_intp batch, features, item, results; /* bytes of an element; the columns of the other factor */
    npy_intp image;                          /* elements of one of the batch */
    npy_intp rows, columns, block, parts;    /* of all windows, the elements of one, the rows of a block, and of how many sums */
    const char *x, *factor;
    char *out, *sums;
    int at; /* of the dtype in the table of BLAS' functions */
} Convolution;

/* Copy `run` windows' elements along the last axis of space from one position on, and zeros where they are outside. */
INLINE char *copy_run(const Convolution *c, const char *line, npy_intp start, char *to) {
    const int last = c->ndim - 1;
    const npy_intp bytes = c->features * c->item, window = c->window[last], step = c->steps[last], size = c->sizes[last];
    if (step == 1) {
        npy_intp before = start < 0 ? -start : 0, end = size - start;
        if (before > window) before = window;
        if (end > window) end = window;
        if (end < before) end = before;
        if (before) memset(to, 0, before * bytes);
        if (end > before) memcpy(to + before * bytes, line + (start + before) * bytes, (end - before) * bytes);
        if (window > end) memset(to + end * bytes, 0, (window - end) * bytes);
        return to + window * bytes;
    }
    for (npy_intp k = 0; k < window; k++, to += bytes) {
        const npy_intp at = start + k * step;
        if (at < 0 || at >= size) memset(to, 0, bytes);
        else memcpy(to, line + at * bytes, bytes);
    }
    return to;
}

/* Copy the elements of the windows from row `first` to before `end`. */
static void copy_windows(const Convolution *c, npy_intp first, npy_intp end, char *to) {
    const int last = c->ndim - 1;
    const npy_intp line = c->sizes[last] * c->features * c->item, outer = c->columns / (c->window[last] * c->features);
    npy_intp at[MOST_SPACE_AXES], image = first;
    for (int i = last; i >= 0; i--) {
        at[i] = image % c->counts[i];
        image /= c->counts[i];
    }
    for (npy_intp row = first; row < end; row++) {
        for (npy_intp k = 0; k < outer; k++) {
            npy_intp rest = k, index = 0, factor = 1;
            int is_inside = 1;
            for (int i = last - 1; i >= 0; i--) {
                const npy_intp p = at[i] * c->strides[i] - c->low[i] + rest % c->window[i] * c->steps[i];
                rest /= c->window[i];
                is_inside &= p >= 0 && p < c->sizes[i];
                index += p * factor;
                factor *= c->sizes[i];
            }
            if (is_inside) {
                to = copy_run(c, c->x + image * c->image * c->item + index * line, at[last] * c->strides[last] - c->low[last], to);
            } else {
                memset(to, 0, c->window[last] * c->features * c->item);
                to += c->window[last] * c->features * c->item;
            }
        }
        int i = last;
        while (i >= 0 && ++at[i] == c->counts[i]) at[i--] = 0;
        image += i < 0;
    }
}

/* out = rows x factor, or out += rows' transpose x factor. */
static void multiply_windows(const Convolution *c, const char *windows, npy_intp rows, const char *factor, char *out, int is_added) {
    const int order = c->is_transposed ? TRANSPOSED : AS_IT_IS;
    const npy_intp m = c->is_transposed ? c->columns : rows, k = c->is_transposed ? rows : c->columns;
    if (c->at == 0) {
        typedef void Gemm(int, int, int, int64_t, int64_t, int64_t, float, const void *, int64_t, const void *, int64_t, float, void *, int64_t);
        ((Gemm *)gemm[0])(ROW_MAJOR, order, AS_IT_IS, m, c->results, k, 1, windows, c->columns, factor, c->results, is_added, out, c->results);
    } else {
        typedef void Gemm(int, int, int, int64_t, int64_t, int64_t, double, const void *, int64_t, const void *, int64_t, double, void *, int64_t);
        ((Gemm *)gemm[1])(ROW_MAJOR, order, AS_IT_IS, m, c->results, k, 1, windows, c->columns, factor, c->results, is_added, out, c->results);
    }
}

static void convolve_block(const Job *job, npy_intp block, char *memory) {
    const Convolution *c = job->product;
    const npy_intp first = block * c->block, end = first + c->block < c->rows ? first + c->block : c->rows;
    copy_windows(c, first, end, memory);
    multiply_windows(c, memory, end - first, c->factor, c->out + first * c->results * c->item, 0);
}

static void convolve_part(const Job *job, npy_intp part, char *memory) {
    const Convolution *c = job->product;
    const npy_intp last = c->rows * (part + 1) / c->parts;
    char *out = part ? c->sums + (part - 1) * c->columns * c->results * c->item : c->out;
    for (npy_intp begin = c->rows * part / c->parts, first = begin; first < last; first += c->block) {
        const npy_intp end = first + c->block < last ? first + c->block : last;
        copy_windows(c, first, end, memory);
        multiply_windows(c, memory, end - first, c->factor + first * c->results * c->item, out, first > begin);
    }
}

#define ADD_PRODUCTS(name, type)                                                                            \
    WIDE static void name(type *out, const type *sums, npy_intp n, npy_intp parts) {                        \
        for (npy_intp part = 0; part < parts; part++) EACH(i, n) out[i] += sums[part * n + i];              \
    }
ADD_PRODUCTS(add_products_f, float)
ADD_PRODUCTS(add_products_d, double)

PyDoc_STRVAR(convolve_doc, "convolve(x, factor, out, geometry, is_transposed, helpers)\n\n"
    "Multiply the matrix that has the elements of a window in each row, or its transpose, by another matrix.\n\n"
    "Args:\n"
    "  x: a contiguous array of floats of 32 or 64 bits, of shape (batch, *space, features), with 1 to 3 axes of space.\n"
    "  factor, out: contiguous arrays of its dtype, of as many elements as matrices of shapes (columns, results) and\n"
    "    (rows, results); or of (rows, results) and (columns, results).\n"
    "  geometry: for each axis of space the number of windows, and their size, distance, elements before the first, and\n"
    "    distance of elements, as for `windows`.\n"
    "  is_transposed: which of the two products.\n"
    "  helpers: how many threads may help.\n\n"
    "Returns:\n"
    "  Whether it was done: not without `use_blas`, or if the arrays are not as above.\n\n"
    "Raises:\n"
    "  MemoryError: there is no memory for the windows of a block.");

static int read_convolution(Convolution *c, PyArrayObject *x, PyArrayObject *factor, PyArrayObject *out, PyObject *geometry) {
    const int type = PyArray_TYPE(x);
    c->ndim = PyArray_NDIM(x) - 2;
    c->at = type == NPY_DOUBLE;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !gemm[c->at] || c->ndim < 1 || c->ndim > MOST_SPACE_AXES
        || PyTuple_GET_SIZE(geometry) != c->ndim || PyArray_TYPE(factor) != type || PyArray_TYPE(out) != type
        || !PyArray_ISCARRAY_RO(x) || !PyArray_ISCARRAY_RO(factor) || !PyArray_ISCARRAY(out) || !PyArray_SIZE(out)) return 0;
    c->batch = c->rows = PyArray_DIM(x, 0);
    c->columns = c->image = c->features = PyArray_DIM(x, c->ndim + 1);
    for (int i = 0; i < c->ndim; i++) {
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(geometry, i), "nnnnn", &c->counts[i], &c->window[i], &c->strides[i], &c->low[i], &c->steps[i]))
            return 0;
        c->sizes[i] = PyArray_DIM(x, i + 1);
        if (c->counts[i] < 1 || c->window[i] < 1) return 0;
        c->rows *= c->counts[i];
        c->columns *= c->window[i];
        c->image *= c->sizes[i];
    }
    if (!c->rows || !c->columns) return 0;
    const npy_intp ours = c->is_transposed ? c->columns : c->rows, theirs = c->is_transposed ? c->rows : c->columns;
    c->results = PyArray_SIZE(out) / ours;
    c->item = PyArray_ITEMSIZE(x);
    c->x = PyArray_BYTES(x);
    c->factor = PyArray_BYTES(factor);
    c->out = PyArray_BYTES(out);
    return PyArray_SIZE(out) == ours * c->results && PyArray_SIZE(factor) == theirs * c->results;
}

static PyObject *convolve(PyObject *module, PyObject *args) {
    PyArrayObject *x, *factor, *out;
    PyObject *geometry;
    Convolution c = {0};
    Job job = {.product = &c, .taken = 1};
    if (!PyArg_ParseTuple(args, "O!O!O!O!pl", &PyArray_Type, &x, &PyArray_Type, &factor, &PyArray_Type, &out, &PyTuple_Type, &geometry, &c.is_transposed, &job.most_helpers))
        return NULL;
    if (!read_convolution(&c, x, factor, out, geometry)) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_FALSE;
    }
    c.block = WINDOWS_COPIED / (c.columns * c.item) / WHOLE_SIDE * WHOLE_SIDE;
    if (c.block < WHOLE_SIDE) c.block = WHOLE_SIDE;
    c.parts = c.rows / c.block / 2;
    if (c.parts > PRODUCTS_ADDED) c.parts = PRODUCTS_ADDED;
    if (c.parts < 1) c.parts = 1;
    job.compute = c.is_transposed ? convolve_part : convolve_block;
    job.blocks = c.is_transposed ? c.parts : (c.rows + c.block - 1) / c.block;
    job.buffers = (c.block * c.columns * c.item + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    job.memory = allocate_aligned(ALIGNMENT, job.buffers * (job.most_helpers + 1));
    const npy_intp sum = c.columns * c.results;
    if (c.is_transposed && c.parts > 1) c.sums = malloc((c.parts - 1) * sum * c.item);
    if (!job.memory || (c.is_transposed && c.parts > 1 && !c.sums)) {
        free_aligned(job.memory);
        free(c.sums);
        return PyErr_NoMemory();
    }
    use_one_thread();
    Py_BEGIN_ALLOW_THREADS
    share(&job);
    if (c.sums && c.at == 0) add_products_f((float *)c.out, (const float *)c.sums, sum, c.parts - 1);
    if (c.sums && c.at == 1) add_products_d((double *)c.out, (const double *)c.sums, sum, c.parts - 1);
    Py_END_ALLOW_THREADS
    use_threads_again();
    free_aligned(job.memory);
    free(c.sums);
    Py_RETURN_TRUE;
}

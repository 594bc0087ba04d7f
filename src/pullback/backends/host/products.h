/* Products of matrices, by the BLAS that NumPy brings, on the threads of this module.

   A block is a product of a batch, or a part of it. BLAS computes each on one thread: threads of its own wait for each
   other after every product, and then spin for milliseconds on the cores that others need. */

enum {
    ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112, /* the numbers of CBLAS */
    LEAST_PART = 1 << 18, /* products of numbers in a part of a product of matrices */
    LEAST_SIDE = 32,      /* rows or columns of such a part */
    WHOLE_SIDE = 16,      /* a part has multiples of as many, which BLAS computes at once */
    MOST_BATCH_AXES = 6,
    LOCKED = 1 << 24, /* the most products for which Python's lock is held: they take some 0.1 ms */
};

/* The matrices of an array. `order` says whether they, or their transposes, have rows of contiguous elements. */
typedef struct {
    char *data;
    const npy_intp *strides; /* of the axes of the batch, in bytes */
    npy_intp line;           /* elements from a row of contiguous elements to the next */
    int order;
} Matrices;

typedef struct Product {
    Matrices x, y;
    char *out;
    int batch_axes;
    const npy_intp *batch;        /* the sizes of these axes */
    npy_intp m, k, n, itemsize;   /* x has m rows of k elements, y k rows of n */
    npy_intp parts, rows, columns; /* of how many parts a product consists, and those of a part */
    void (*part)(const struct Product *, const char *, const char *, char *, npy_intp, npy_intp);
} Product;

/* BLAS' functions, by the dtypes fdFD; all integers have 64 bits. */
static void *gemm[4], *gemv[4];
static int (*get_threads)(void);
static void (*set_threads)(int);
static int multiplying, threads_before; /* how many calls have one thread set, and how many there were; under Python's lock */
static int forked_within; /* whether this process is the child of a fork during such a call: its number of threads is one */

/* Let NumPy's library use one thread, until as many calls of `use_threads_again`. */
static void use_one_thread(void) {
    if (multiplying++ > 0) return;
    if (!forked_within) threads_before = get_threads();
    forked_within = 0;
    if (threads_before > 1) set_threads(1);
}

static void use_threads_again(void) {
    if (multiplying > 0 && --multiplying == 0 && threads_before > 1) set_threads(threads_before);
}

static void forget_products(void) {
    forked_within |= multiplying > 0;
    multiplying = 0;
}

/* A matrix by a matrix, or by a vector if one of the operands is one: its routine reads the other operand once. */
#define PART_OF_PRODUCT(name, at, type, scalar, one, zero)                                                  \
    static void name(const Product *p, const char *x, const char *y, char *out, npy_intp m, npy_intp n) {   \
        typedef void Gemm(int, int, int, int64_t, int64_t, int64_t, scalar, const void *, int64_t,          \
                          const void *, int64_t, scalar, void *, int64_t);                                  \
        typedef void Gemv(int, int, int64_t, int64_t, scalar, const void *, int64_t, const void *, int64_t, \
                          scalar, void *, int64_t);                                                         \
        type alpha[2] = {1, 0}, beta[2] = {0, 0};                                                           \
        (void)alpha, (void)beta;                                                                            \
        int turned = p->x.order == TRANSPOSED, flipped = p->y.order == TRANSPOSED;                          \
        if (p->n == 1) {                                                                                    \
            ((Gemv *)gemv[at])(ROW_MAJOR, p->x.order, turned ? p->k : m, turned ? m : p->k, one, x,         \
                               p->x.line, y, flipped ? 1 : p->y.line, zero, out, 1);                        \
        } else if (p->m == 1) {                                                                             \
            ((Gemv *)gemv[at])(ROW_MAJOR, flipped ? AS_IT_IS : TRANSPOSED, flipped ? n : p->k,              \
                               flipped ? p->k : n, one, y, p->y.line, x, turned ? p->x.line : 1, zero, out, 1); \
        } else {                                                                                            \
            ((Gemm *)gemm[at])(ROW_MAJOR, p->x.order, p->y.order, m, n, p->k, one, x, p->x.line, y,         \
                               p->y.line, zero, out, p->n);                                                 \
        }                                                                                                   \
    }
PART_OF_PRODUCT(part_f, 0, float, float, 1, 0)
PART_OF_PRODUCT(part_d, 1, double, double, 1, 0)
PART_OF_PRODUCT(part_F, 2, float, const void *, alpha, beta)
PART_OF_PRODUCT(part_D, 3, double, const void *, alpha, beta)

static const char *matrix(const Product *p, const Matrices *matrices, npy_intp number) {
    const char *data = matrices->data;
    for (int i = p->batch_axes - 1; i >= 0; i--) {
        data += number % p->batch[i] * matrices->strides[i];
        number /= p->batch[i];
    }
    return data;
}

static void multiply_block(const Job *job, npy_intp block, char *memory) {
    const Product *p = job->product;
    npy_intp number = block / p->parts, part = block % p->parts;
    npy_intp row = p->rows < p->m ? part * p->rows : 0, column = p->columns < p->n ? part * p->columns : 0;
    npy_intp rows = p->m - row < p->rows ? p->m - row : p->rows;
    npy_intp columns = p->n - column < p->columns ? p->n - column : p->columns;
    p->part(p, matrix(p, &p->x, number) + row * (p->x.order == AS_IT_IS ? p->x.line : 1) * p->itemsize,
            matrix(p, &p->y, number) + column * (p->y.order == AS_IT_IS ? 1 : p->y.line) * p->itemsize,
            p->out + ((number * p->m + row) * p->n + column) * p->itemsize, rows, columns);
}

/* Read an array; return whether BLAS reads its matrices as they lie in memory. */
static int read_matrices(PyArrayObject *array, Matrices *matrices) {
    int axes = PyArray_NDIM(array);
    npy_intp item = PyArray_ITEMSIZE(array), rows = PyArray_DIM(array, axes - 2), columns = PyArray_DIM(array, axes - 1);
    npy_intp down = PyArray_STRIDE(array, axes - 2), right = PyArray_STRIDE(array, axes - 1);
    matrices->data = PyArray_BYTES(array);
    matrices->strides = PyArray_STRIDES(array);
    if (!PyArray_ISALIGNED(array) || down % item || right % item) return 0;
    if ((columns == 1 || right == item) && (rows == 1 || down >= columns * item)) {
        matrices->order = AS_IT_IS;
        matrices->line = rows == 1 ? columns : down / item;
        return 1;
    }
    if ((rows == 1 || down == item) && (columns == 1 || right >= rows * item)) {
        matrices->order = TRANSPOSED;
        matrices->line = columns == 1 ? rows : right / item;
        return 1;
    }
    return 0;
}

/* Whether the shapes and dtypes of arrays are those of factors and their product. */
static int are_factors(PyArrayObject *x, PyArrayObject *y, PyArrayObject *out) {
    int axes = PyArray_NDIM(x), last = axes - 1;
    if (axes < 2 || axes > MOST_BATCH_AXES + 2 || PyArray_NDIM(y) != axes || PyArray_NDIM(out) != axes) return 0;
    for (int i = 0; i < axes - 2; i++) {
        if (PyArray_DIM(x, i) != PyArray_DIM(out, i) || PyArray_DIM(y, i) != PyArray_DIM(out, i)) return 0;
    }
    if (PyArray_DIM(x, last) != PyArray_DIM(y, last - 1) || PyArray_DIM(x, last - 1) != PyArray_DIM(out, last - 1)
        || PyArray_DIM(y, last) != PyArray_DIM(out, last) || !PyArray_SIZE(x) || !PyArray_SIZE(out)) return 0;
    return PyArray_TYPE(y) == PyArray_TYPE(x) && PyArray_TYPE(out) == PyArray_TYPE(x) && PyArray_ISNOTSWAPPED(x)
        && PyArray_ISNOTSWAPPED(y) && PyArray_ISNOTSWAPPED(out);
}

/* Divide each product into parts, so that each thread has about as many blocks as the others. */
static void divide_product(Product *p, npy_intp batch, long workers) {
    npy_intp side = p->m > p->n ? p->m : p->n, most = side / LEAST_SIDE;
    npy_intp by_work = p->m * p->n * p->k / LEAST_PART, parts = batch % workers && batch < 4 * workers ? workers : 1;
    if (parts > most) parts = most;
    if (parts > by_work) parts = by_work;
    p->parts = 1;
    p->rows = p->m;
    p->columns = p->n;
    if (parts < 2) return;
    npy_intp size = (side + parts - 1) / parts;
    size = (size + WHOLE_SIDE - 1) / WHOLE_SIDE * WHOLE_SIDE;
    p->parts = (side + size - 1) / size;
    if (p->m > p->n) p->rows = size;
    else p->columns = size;
}

PyDoc_STRVAR(multiply_doc, "multiply(x, y, out, helpers)\n\n"
    "Multiply matrices, by the functions that `use_blas` gave.\n\n"
    "Args:\n"
    "  x, y, out: arrays of one dtype of BLAS, of shapes (*b, m, k), (*b, k, n) and (*b, m, n), without sizes of 0.\n"
    "    The result is contiguous.\n"
    "  helpers: how many threads may help.\n\n"
    "Returns:\n"
    "  Whether it was done: not if BLAS could not read a matrix where it lies, or what was given is not as above.");

static PyObject *multiply(PyObject *module, PyObject *args) {
    PyArrayObject *x, *y, *out;
    Product product = {.parts = 1};
    Job job = {.compute = multiply_block, .product = &product, .taken = 1};
    if (!PyArg_ParseTuple(args, "O!O!O!l", &PyArray_Type, &x, &PyArray_Type, &y, &PyArray_Type, &out, &job.most_helpers))
        return NULL;
    static void (*const parts[4])(const Product *, const char *, const char *, char *, npy_intp, npy_intp) =
        {part_f, part_d, part_F, part_D};
    static const int types[4] = {NPY_FLOAT, NPY_DOUBLE, NPY_CFLOAT, NPY_CDOUBLE};
    int at = 0;
    while (at < 4 && PyArray_TYPE(x) != types[at]) at++;
    if (at == 4 || !gemm[at] || !gemv[at] || !are_factors(x, y, out) || !PyArray_IS_C_CONTIGUOUS(out)
        || !read_matrices(x, &product.x) || !read_matrices(y, &product.y))
        Py_RETURN_FALSE;
    int axes = PyArray_NDIM(x), last = axes - 1;
    product.part = parts[at];
    product.out = PyArray_BYTES(out);
    product.itemsize = PyArray_ITEMSIZE(x);
    product.m = PyArray_DIM(out, last - 1);
    product.k = PyArray_DIM(x, last);
    product.n = PyArray_DIM(out, last);
    product.batch_axes = axes - 2;
    product.batch = PyArray_DIMS(out);
    npy_intp count = PyArray_SIZE(out) / (product.m * product.n);
    divide_product(&product, count, job.most_helpers + 1);
    job.blocks = count * product.parts;
    use_one_thread();
    if (count * product.m * product.n * product.k > LOCKED) {
        Py_BEGIN_ALLOW_THREADS
        share(&job);
        Py_END_ALLOW_THREADS
    } else {
        share(&job);
    }
    use_threads_again();
    Py_RETURN_TRUE;
}

PyDoc_STRVAR(alone_doc, "alone(begins)\n\n"
    "Let the library of `use_blas` use one thread in all calls, from a call with True to the one with False.");

static PyObject *alone(PyObject *module, PyObject *begins) {
    int truth = PyObject_IsTrue(begins);
    if (truth < 0) return NULL;
    if (get_threads == NULL) return PyErr_Format(PyExc_RuntimeError, "alone is for after use_blas");
    if (truth) use_one_thread();
    else use_threads_again();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(use_blas_doc, "use_blas(functions)\n\n"
    "Take the functions of an OpenBLAS whose integers have 64 bits.\n\n"
    "Args:\n"
    "  functions: the addresses of CBLAS' functions gemm, then gemv, for the dtypes fdFD, and of those that get and set\n"
    "    the number of threads.");

static PyObject *use_blas(PyObject *module, PyObject *functions) {
    void *found[10];
    if (!PyTuple_Check(functions) || PyTuple_GET_SIZE(functions) != 10) {
        PyErr_SetString(PyExc_TypeError, "use_blas takes a tuple of ten addresses");
        return NULL;
    }
    for (int i = 0; i < 10; i++) {
        found[i] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(functions, i));
        if (PyErr_Occurred()) return NULL;
    }
    memcpy(gemm, found, sizeof gemm);
    memcpy(gemv, found + 4, sizeof gemv);
    get_threads = (int (*)(void))found[8];
    set_threads = (void (*)(int))found[9];
    Py_RETURN_NONE;
}

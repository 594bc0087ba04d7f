/* Decompositions of the matrices of a batch, by the LAPACK that NumPy brings, on the threads of this module.

   A block is a matrix, which LAPACK decomposes on one thread, in its own precision. So the bits do not depend on the
   number of threads. Matrices lie one after another, by columns. */

typedef struct Batch {
    int64_t (*solve)(const struct Batch *, char *a, npy_intp number, char *memory);
    void *first, *second; /* LAPACKE's routines */
    char *arrays[4]; /* the matrices, and the results */
    npy_intp bytes[4], count;
    npy_intp m, n, k; /* the rows and columns of a matrix; the columns of Q, or the rows of the right vectors */
    npy_intp itemsize, work, real_work, integers; /* the numbers of elements of workspace */
    int is_complex;
    char job;
    Shared failed;
} Batch;

enum { BY_COLUMNS = 102 }; /* LAPACKE's number */

static char *next_space(char **memory, npy_intp bytes) {
    char *space = *memory;
    *memory += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return space;
}

static char *part_of(const Batch *b, int array, npy_intp number) { return b->arrays[array] + number * b->bytes[array]; }

/* Singular values, left vectors, and the right ones as rows. */
static int64_t solve_svd(const Batch *b, char *a, npy_intp number, char *memory) {
    typedef int64_t Real(int, char, int64_t, int64_t, void *, int64_t, void *, void *, int64_t, void *, int64_t, void *,
                         int64_t, int64_t *);
    typedef int64_t Complex(int, char, int64_t, int64_t, void *, int64_t, void *, void *, int64_t, void *, int64_t,
                            void *, int64_t, void *, int64_t *);
    char *s = part_of(b, 1, number), *left = part_of(b, 2, number);
    char *right = part_of(b, 3, number);
    void *work = next_space(&memory, (b->work + 1) * b->itemsize);
    if (!b->is_complex) {
        return ((Real *)b->first)(BY_COLUMNS, b->job, b->m, b->n, a, b->m, s, left, b->m, right, b->k, work, b->work,
                                  (int64_t *)memory);
    }
    void *real_work = next_space(&memory, b->real_work * b->itemsize / 2);
    return ((Complex *)b->first)(BY_COLUMNS, b->job, b->m, b->n, a, b->m, s, left, b->m, right, b->k, work, b->work,
                                 real_work, (int64_t *)memory);
}

/* Eigenvalues of Hermitian matrices, whose lower triangles are read, and eigenvectors in their place. */
static int64_t solve_eigh(const Batch *b, char *a, npy_intp number, char *memory) {
    typedef int64_t Real(int, char, char, int64_t, void *, int64_t, void *, void *, int64_t, int64_t *, int64_t);
    typedef int64_t Complex(int, char, char, int64_t, void *, int64_t, void *, void *, int64_t, void *, int64_t,
                            int64_t *, int64_t);
    char *w = part_of(b, 1, number);
    void *work = next_space(&memory, (b->work + 1) * b->itemsize);
    if (!b->is_complex) {
        return ((Real *)b->first)(BY_COLUMNS, b->job, 'L', b->n, a, b->n, w, work, b->work, (int64_t *)memory,
                                  b->integers);
    }
    void *real_work = next_space(&memory, b->real_work * b->itemsize / 2);
    return ((Complex *)b->first)(BY_COLUMNS, b->job, 'L', b->n, a, b->n, w, work, b->work, real_work, b->real_work,
                                 (int64_t *)memory, b->integers);
}

/* R by rows, and Q in the place of the first columns of the matrix. */
static int64_t solve_qr(const Batch *b, char *a, npy_intp number, char *memory) {
    typedef int64_t Factor(int, int64_t, int64_t, void *, int64_t, void *, void *, int64_t);
    typedef int64_t Build(int, int64_t, int64_t, int64_t, void *, int64_t, void *, void *, int64_t);
    char *r = part_of(b, 1, number);
    void *work = next_space(&memory, (b->work + 1) * b->itemsize);
    int64_t failed = ((Factor *)b->first)(BY_COLUMNS, b->m, b->n, a, b->m, memory, work, b->work);
    const npy_intp size = b->itemsize;
    memset(r, 0, b->bytes[1]);
    for (npy_intp i = 0; i < b->k; i++) {
        for (npy_intp j = i; j < b->n; j++) memcpy(r + (i * b->n + j) * size, a + (j * b->m + i) * size, size);
    }
    if (failed) return failed;
    return ((Build *)b->second)(BY_COLUMNS, b->m, b->k, b->k, a, b->m, memory, work, b->work);
}

static void solve_block(const Job *job, npy_intp block, char *memory) {
    Batch *batch = (Batch *)job->product;
    if (batch->solve(batch, part_of(batch, 0, block), block, memory)) shared_set(&batch->failed, 1);
}

/* Describe the arrays of a batch; return whether they are as `decompose` wants them. */
static int read_batch(Batch *b, PyObject *arrays) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arrays); i++) {
        PyArrayObject *array = (PyArrayObject *)PyTuple_GET_ITEM(arrays, i);
        if (!PyArray_Check((PyObject *)array) || !PyArray_ISCARRAY(array) || PyArray_NDIM(array) < 2) return 0;
        if (!i) {
            if (PyArray_NDIM(array) != 3 || !PyArray_SIZE(array)) return 0;
            b->count = PyArray_DIM(array, 0);
            b->n = PyArray_DIM(array, 1);
            b->m = PyArray_DIM(array, 2);
            b->itemsize = PyArray_ITEMSIZE(array);
            b->is_complex = PyArray_ISCOMPLEX(array);
        }
        if (PyArray_DIM(array, 0) != b->count) return 0;
        b->arrays[i] = PyArray_BYTES(array);
        b->bytes[i] = PyArray_NBYTES(array) / b->count;
    }
    return 1;
}

PyDoc_STRVAR(decompose_doc, "decompose(kind, job, routines, arrays, k, workspace, helpers)\n\n"
    "Decompose each matrix of a batch, by routines of LAPACKE whose integers have 64 bits.\n\n"
    "Args:\n"
    "  kind: 0 for `gesdd`, 1 for `syevd` or `heevd`, 2 for `geqrf` followed by `orgqr` or `ungqr`.\n"
    "  job: the letter for the vectors, as a number; 0 for a QR decomposition.\n"
    "  routines: the addresses of two routines, which take their workspace; the second may be 0.\n"
    "  arrays: the matrices (b, n, m), each of which lies by columns: they are overwritten. Then the results (b, ...):\n"
    "    singular values, left vectors and right vectors; eigenvalues; or R by rows. All are contiguous.\n"
    "  k: the rows of the right vectors, or the columns of Q.\n"
    "  workspace: the numbers of elements, of real elements and of integers.\n"
    "  helpers: how many threads may help.\n\n"
    "Returns:\n"
    "  Whether all routines report success.\n\n"
    "Raises:\n"
    "  ValueError: the arrays are not as above.\n"
    "  MemoryError: there is no memory for the workspace.");

static PyObject *decompose(PyObject *module, PyObject *args) {
    static int64_t (*const solvers[3])(const Batch *, char *, npy_intp, char *) = {solve_svd, solve_eigh, solve_qr};
    static const int results[3] = {3, 1, 1};
    int kind, letter;
    unsigned long long first, second;
    PyObject *given;
    Batch batch = {0};
    Job job = {.compute = solve_block, .product = &batch, .taken = 1};
    if (!PyArg_ParseTuple(args, "ii(KK)O!n(nnn)l", &kind, &letter, &first, &second, &PyTuple_Type, &given, &batch.k,
                          &batch.work, &batch.real_work, &batch.integers, &job.most_helpers)) return NULL;
    if (kind < 0 || kind > 2 || PyTuple_GET_SIZE(given) != results[kind] + 1 || !read_batch(&batch, given))
        return PyErr_Format(PyExc_ValueError, "expected contiguous arrays for a decomposition of the kind %d", kind);
    batch.solve = solvers[kind];
    batch.first = (void *)(uintptr_t)first;
    batch.second = (void *)(uintptr_t)second;
    batch.job = (char)letter;
    job.blocks = batch.count;
    /* The last space holds integers of 64 bits, or the factors of the reflections. */
    npy_intp spaces[3] = {(batch.work + 1) * batch.itemsize, batch.real_work * batch.itemsize / 2, 16 * (batch.integers + 1)};
    for (int i = 0; i < 3; i++) job.buffers += (spaces[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    job.memory = allocate_aligned(ALIGNMENT, job.buffers * (job.most_helpers + 1));
    if (job.memory == NULL) return PyErr_NoMemory();
    use_one_thread();
    Py_BEGIN_ALLOW_THREADS
    share(&job);
    Py_END_ALLOW_THREADS
    use_threads_again();
    free_aligned(job.memory);
    return PyBool_FromLong(!shared_get(&batch.failed));
}

/* Products by roots of unity, between the two steps of a long Fourier transform. */

enum { FINE = 1 << 10, /* the roots of a table of neighbours; another has every so many */
       TURNED = 16,    /* the columns for which products of two roots are computed together */
       ROWS_OF_TURNS = 1 << 13 /* the elements of a block */ };

/* The root exp(2 pi i m / n), for 0 <= m < n, from an angle of at most pi / 4. */
static void root_of_unity(npy_intp m, npy_intp n, double *root) {
    const npy_intp eighth = 8 * m / n; /* n is far below 2**59 */
    double c, s;
    switch (eighth) {
    case 0: c = cos(2 * PI * m / n), s = sin(2 * PI * m / n); break;
    case 1: case 2: c = -sin(2 * PI * (4 * m - n) / 4 / n), s = cos(2 * PI * (4 * m - n) / 4 / n); break;
    case 3: case 4: c = -cos(2 * PI * (2 * m - n) / 2 / n), s = -sin(2 * PI * (2 * m - n) / 2 / n); break;
    case 5: case 6: c = sin(2 * PI * (4 * m - 3 * n) / 4 / n), s = -cos(2 * PI * (4 * m - 3 * n) / 4 / n); break;
    default: c = cos(2 * PI * (m - n) / n), s = sin(2 * PI * (m - n) / n);
    }
    root[0] = c;
    root[1] = s;
}

typedef struct Turns {
    char *x;
    npy_intp rows, columns, each; /* of a block */
    const double *fine, *coarse;  /* two numbers for each root */
    double sign;                  /* of the exponents */
    void (*turn)(char *row, npy_intp columns, const double *first, const double *steps);
} Turns;

static void root_from_tables(const Turns *t, npy_intp m, double *root) {
    const double *p = t->coarse + 2 * (m / FINE), *q = t->fine + 2 * (m % FINE);
    root[0] = p[0] * q[0] - p[1] * q[1];
    root[1] = (p[0] * q[1] + p[1] * q[0]) * t->sign;
}

/* Multiply the elements of a row by products of two roots: `first` has TURNED real parts, then the imaginary parts; `steps`
   two numbers for each TURNED columns. */
#define TURN(name, type)                                                                                    \
    WIDE static void name(char *row, npy_intp columns, const double *first, const double *steps) {          \
        type *x = (type *)row;                                                                              \
        for (npy_intp c = 0; c < columns; c += TURNED, x += 2 * TURNED, steps += 2) {                       \
            const double p = steps[0], q = steps[1];                                                        \
            const npy_intp n = columns - c < TURNED ? columns - c : TURNED;                                 \
            type real[TURNED], imaginary[TURNED];                                                           \
            for (int i = 0; i < TURNED; i++) {                                                              \
                real[i] = (type)(p * first[i] - q * first[TURNED + i]);                                     \
                imaginary[i] = (type)(p * first[TURNED + i] + q * first[i]);                                \
            }                                                                                               \
            for (npy_intp i = 0; i < n; i++) {                                                              \
                const type a = x[2 * i], b = x[2 * i + 1];                                                  \
                x[2 * i] = a * real[i] - b * imaginary[i];                                                  \
                x[2 * i + 1] = a * imaginary[i] + b * real[i];                                              \
            }                                                                                               \
        }                                                                                                   \
    }
TURN(turn_f, float)
TURN(turn_d, double)

static void turn_block(const Job *job, npy_intp block, char *memory) {
    const Turns *t = job->product;
    const npy_intp n = t->rows * t->columns, item = t->turn == turn_f ? 2 * sizeof(float) : 2 * sizeof(double);
    const npy_intp end = (block + 1) * t->each < t->rows ? (block + 1) * t->each : t->rows;
    double first[2 * TURNED], *steps = (double *)memory;
    for (npy_intp row = block * t->each; row < end; row++) {
        for (npy_intp i = 0; i < TURNED; i++) {
            double root[2];
            root_from_tables(t, row * i % n, root);
            first[i] = root[0];
            first[TURNED + i] = root[1];
        }
        for (npy_intp c = 0; c < t->columns; c += TURNED) root_from_tables(t, row * c, steps + c / TURNED * 2);
        t->turn(t->x + row * t->columns * item, t->columns, first, steps);
    }
}

PyDoc_STRVAR(turn_doc, "turn(x, is_inverse, helpers)\n\n"
    "Multiply the element in each row r and column c of a matrix of n elements by exp(-2 pi i r c / n); or by exp(2 pi i r c / n).\n\n"
    "Args:\n"
    "  x: a contiguous matrix of complex numbers, which is written.\n"
    "  is_inverse: whether the exponents are positive.\n"
    "  helpers: how many threads may help.\n\n"
    "Raises:\n"
    "  MemoryError: there is no memory for the tables.\n"
    "  ValueError: the array is not as above.");

static PyObject *turn(PyObject *module, PyObject *args) {
    PyArrayObject *x;
    int is_inverse;
    Turns t = {0};
    Job job = {.compute = turn_block, .product = &t, .taken = 1};
    if (!PyArg_ParseTuple(args, "O!pl", &PyArray_Type, &x, &is_inverse, &job.most_helpers)) return NULL;
    const int type = PyArray_TYPE(x);
    if ((type != NPY_CFLOAT && type != NPY_CDOUBLE) || PyArray_NDIM(x) != 2 || !PyArray_ISCARRAY(x) || !PyArray_SIZE(x))
        return PyErr_Format(PyExc_ValueError, "expected a contiguous matrix of complex numbers");
    const npy_intp n = PyArray_SIZE(x), coarse = (n + FINE - 1) / FINE;
    double *tables = malloc(2 * (FINE + coarse) * sizeof(double));
    t.x = PyArray_BYTES(x);
    t.rows = PyArray_DIM(x, 0);
    t.columns = PyArray_DIM(x, 1);
    t.each = ROWS_OF_TURNS / t.columns + 1;
    t.sign = is_inverse ? 1 : -1;
    t.turn = type == NPY_CFLOAT ? turn_f : turn_d;
    job.blocks = (t.rows + t.each - 1) / t.each;
    job.buffers = ((t.columns + TURNED - 1) / TURNED * 2 * sizeof(double) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    job.memory = allocate_aligned(ALIGNMENT, job.buffers * (job.most_helpers + 1));
    if (!tables || !job.memory) {
        free(tables);
        free_aligned(job.memory);
        return PyErr_NoMemory();
    }
    for (npy_intp m = 0; m < FINE && m < n; m++) root_of_unity(m, n, tables + 2 * m);
    for (npy_intp m = 0; m < coarse; m++) root_of_unity(m * FINE, n, tables + 2 * (FINE + m));
    t.fine = tables;
    t.coarse = tables + 2 * FINE;
    Py_BEGIN_ALLOW_THREADS
    fenv_t environment;
    feholdexcept(&environment);
    share(&job);
    fesetenv(&environment);
    Py_END_ALLOW_THREADS
    free(tables);
    free_aligned(job.memory);
    Py_RETURN_NONE;
}

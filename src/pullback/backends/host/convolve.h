/* Convolutions of images whose features are side by side, where the processor multiplies and adds with one rounding.

   A tile is three positions of a row of the result times 32 features: twelve vectors of 256 bits, which the processor keeps
   while it goes through the elements of the window, in row-major order. Each element of the result is one chain of
   sums, whatever tile it is in and whatever thread computes it. */

enum { TILE_FEATURES = 32, TILE_POSITIONS = 3 };

typedef struct {
    const float *x, *kernel; /* padded images; the kernel, by panels of 32 features of the result */
    float *out;
    npy_intp height, width, features; /* of the images */
    npy_intp rows, columns, results;  /* of the result */
    npy_intp window_rows, window_columns, panels;
} Convolution;

#ifdef FUSED
#define ALL_OF(x) {x, x, x, x, x, x, x, x}
#define ADD_PRODUCT(to, a, b) to = FUSED_OF_EIGHT(a, b, to);
#define OF_VECTOR(v)                                                                                        \
    {                                                                                                       \
        const Eight k = ((const EightAnywhere *)kernel)[v];                                                 \
        ADD_PRODUCT(a##v, first, k) ADD_PRODUCT(b##v, second, k) ADD_PRODUCT(c##v, third, k)                \
    }
#define STORE(v)                                                                                            \
    ((EightAnywhere *)out)[v] = a##v;                                                                       \
    ((EightAnywhere *)(out + stride))[v] = b##v;                                                            \
    ((EightAnywhere *)(out + 2 * stride))[v] = c##v;

/* Compute a tile; the elements of a row of a window are a run of the images' elements, and `line` is a row of these. */
FUSED static void convolve_tile(const float *x, npy_intp line, npy_intp rows, npy_intp run, npy_intp features, const float *kernel, float *out, npy_intp stride) {
    Eight a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0}, c0 = {0}, c1 = {0}, c2 = {0}, c3 = {0};
    for (npy_intp r = 0; r < rows; r++, x += line) {
        for (npy_intp i = 0; i < run; i++, kernel += TILE_FEATURES) {
            const float p = x[i], q = x[i + features], s = x[i + 2 * features];
            const Eight first = ALL_OF(p), second = ALL_OF(q), third = ALL_OF(s);
            OF_VECTOR(0) OF_VECTOR(1) OF_VECTOR(2) OF_VECTOR(3)
        }
    }
    STORE(0) STORE(1) STORE(2) STORE(3)
}

/* Compute a row of the result of an image. The last tile overlaps the one before, if need be. */
static void convolve_row(const Job *job, npy_intp block, char *memory) {
    const Convolution *c = job->product;
    const npy_intp line = c->width * c->features, image = block / c->rows, row = block % c->rows;
    const npy_intp run = c->window_columns * c->features, panel = c->window_rows * run * TILE_FEATURES;
    const float *x = c->x + (image * c->height + row) * line;
    float *out = c->out + block * c->columns * c->results, tile[TILE_POSITIONS * TILE_FEATURES];
    (void)memory;
    for (npy_intp p = 0; p < c->panels; p++, out += TILE_FEATURES) {
        const npy_intp left = c->results - p * TILE_FEATURES;
        for (npy_intp first = 0; first < c->columns; first += TILE_POSITIONS) {
            if (first > c->columns - TILE_POSITIONS) first = c->columns - TILE_POSITIONS;
            const float *from = x + first * c->features, *kernel = c->kernel + p * panel;
            float *to = out + first * c->results;
            if (left >= TILE_FEATURES) {
                convolve_tile(from, line, c->window_rows, run, c->features, kernel, to, c->results);
            } else {
                convolve_tile(from, line, c->window_rows, run, c->features, kernel, tile, TILE_FEATURES);
                for (int i = 0; i < TILE_POSITIONS; i++)
                    memcpy(to + i * c->results, tile + i * TILE_FEATURES, left * sizeof(float));
            }
        }
    }
}
#undef ALL_OF
#undef ADD_PRODUCT
#undef OF_VECTOR
#undef STORE
#endif

PyDoc_STRVAR(convolves_doc, "convolves()\n\n"
    "Return whether `convolve` is for this processor: it has vectors of 256 bits, products and sums with one rounding, and\n"
    "no vectors of 512 bits, with which compiled convolutions may be quicker.");

static PyObject *convolves(PyObject *module, PyObject *unused) {
#ifdef FUSED
    return PyBool_FromLong(HAS_FUSED() && !HAS_VECTORS_OF_512());
#else
    Py_RETURN_FALSE;
#endif
}

PyDoc_STRVAR(convolve_doc, "convolve(x, kernel, out, helpers)\n\n"
    "Convolve padded images with a kernel, in steps of one element. `convolves` says whether the processor can.\n\n"
    "Args:\n"
    "  x: images, rows, columns and features, of 32-bit floats side by side.\n"
    "  kernel: panels, rows, columns, features, and 32 features of the result, of which the last panel may have fewer: the rest is not read out.\n"
    "  out: the result, of images, rows, columns, at least three, and features.\n"
    "  helpers: how many threads may help.");

static PyObject *convolve(PyObject *module, PyObject *args) {
    PyArrayObject *x, *kernel, *out;
    long helpers;
    if (!PyArg_ParseTuple(args, "O!O!O!l", &PyArray_Type, &x, &PyArray_Type, &kernel, &PyArray_Type, &out, &helpers)) return NULL;
    PyArrayObject *arrays[] = {x, kernel, out};
    int fits = PyArray_NDIM(x) == 4 && PyArray_NDIM(kernel) == 5 && PyArray_NDIM(out) == 4 && PyArray_ISWRITEABLE(out);
    for (int i = 0; i < 3; i++) fits = fits && PyArray_TYPE(arrays[i]) == NPY_FLOAT && PyArray_ISCARRAY_RO(arrays[i]);
    if (fits) {
        const npy_intp *s = PyArray_DIMS(x), *k = PyArray_DIMS(kernel), *r = PyArray_DIMS(out);
        fits = k[0] > 0 && k[1] > 0 && k[2] > 0 && k[3] == s[3] && k[4] == TILE_FEATURES && r[0] == s[0] && r[1] == s[1] - k[1] + 1
               && r[2] == s[2] - k[2] + 1 && r[1] > 0 && r[2] >= TILE_POSITIONS && r[3] > (k[0] - 1) * TILE_FEATURES
               && r[3] <= k[0] * TILE_FEATURES;
    }
    if (!fits) return PyErr_Format(PyExc_ValueError, "expected arrays of floats side by side, of shapes that fit");
#ifdef FUSED
    if (HAS_FUSED()) {
        const npy_intp *s = PyArray_DIMS(x), *k = PyArray_DIMS(kernel), *r = PyArray_DIMS(out);
        const Convolution convolution = {
            .x = PyArray_DATA(x), .kernel = PyArray_DATA(kernel), .out = PyArray_DATA(out), .height = s[1], .width = s[2],
            .features = s[3], .rows = r[1], .columns = r[2], .results = r[3], .window_rows = k[1], .window_columns = k[2], .panels = k[0],
        };
        Job job = {.compute = convolve_row, .product = &convolution, .taken = 1, .blocks = r[0] * r[1], .most_helpers = helpers};
        Py_BEGIN_ALLOW_THREADS
        fenv_t environment;
        feholdexcept(&environment);
        share(&job);
        fesetenv(&environment);
        Py_END_ALLOW_THREADS
        Py_RETURN_NONE;
    }
#endif
    return PyErr_Format(PyExc_RuntimeError, "the processor has no such instructions");
}

/* Arithmetic on numbers of two doubles each, the sum of a double and of a much smaller one, in one pass over arrays.

   The formulas are those of `analysis/double_double.py`, which computes them by NumPy where there is no compiler, or where
   a number is huge, tiny or not finite: then a kernel makes NaN of the second double, and its call returns None. The
   constants and tables come from there, too. Products are exact by Dekker's splitting and not by a fused instruction,
   which some processors lack. */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#include "numpy/arrayobject.h"
#include "numpy/arrayscalars.h"

#include "portable.h"

#define EACH(i, n) INDEPENDENT for (npy_intp i = 0; i < (n); i++)
#define ROUNDING 0x1.8p52 /* a sum with it is rounded to an integer, which its last bits are */

INLINE uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE double of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

typedef struct {
    double hi, lo;
} Pair;

INLINE Pair pair_normal(double s, double e) {
    double hi = s + e;
    return (Pair){hi, e - (hi - s)};
}

INLINE Pair pair_sum(double a, double b) {
    double s = a + b, bb = s - a;
    return (Pair){s, (a - (s - bb)) + (b - bb)};
}

INLINE Pair pair_neg(Pair x) { return (Pair){-x.hi, -x.lo}; }
INLINE Pair pair_scaled(Pair x, double factor) { return (Pair){x.hi * factor, x.lo * factor}; }
INLINE Pair pair_if(int condition, Pair x, Pair y) { return (Pair){condition ? x.hi : y.hi, condition ? x.lo : y.lo}; }

INLINE Pair pair_add(Pair x, Pair y) {
    Pair s = pair_sum(x.hi, y.hi);
    return pair_normal(s.hi, s.lo + (x.lo + y.lo));
}

INLINE Pair pair_sub(Pair x, Pair y) { return pair_add(x, pair_neg(y)); }

INLINE Pair pair_larger(Pair x, Pair y) { return pair_if((y.hi < x.hi) | ((y.hi == x.hi) & (y.lo < x.lo)), x, y); }
INLINE Pair pair_smaller(Pair x, Pair y) { return pair_neg(pair_larger(pair_neg(x), pair_neg(y))); }
INLINE Pair pair_abs(Pair x) { return pair_if(x.hi < 0, pair_neg(x), x); }

/* Elementary functions. -------------------------------------------------------------------------------------------- */

enum { EXPS = 64, LOGS = 96, ANGLES = 512 };
static struct {
    double exp_pieces[3], log_pieces[2], angle_pieces[4];
    Pair exps[EXPS], logs[LOGS], sines[ANGLES], cosines[ANGLES];
} pair_constants;

#define SUM_8(r, c) (c[0] + r * (c[1] + r * (c[2] + r * (c[3] + r * (c[4] + r * (c[5] + r * (c[6] + r * c[7])))))))
static const double PAIR_EXP[] = {1.0 / 3, 1.0 / 12, 1.0 / 60, 1.0 / 360, 1.0 / 2520, 1.0 / 20160};
static const double PAIR_LOG[] = {1.0 / 3, -1.0 / 4, 1.0 / 5, -1.0 / 6, 1.0 / 7, -1.0 / 8, 1.0 / 9, -1.0 / 10};
static const double PAIR_SINE[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880};
static const double PAIR_COSINE[] = {1.0 / 24, -1.0 / 720, 1.0 / 40320};

typedef struct {
    Pair more;      /* exp(rest) - 1 */
    uint64_t count; /* of steps of log(2) / 64, which the rest lacks, plus 2**20 */
} Exponential;

typedef void PairKernel(npy_intp n, const double *const *in, double *hi, double *lo);

#include "doubles.h"

/* Dekker: the rest of the product p of a and b; 2**27 + 1 splits a double. */
INLINE double pair_rest(double a, double b, double p) {
    const double split = 134217729.0;
    double t = split * a, u = split * b, ah = t - (t - a), al = a - ah, bh = u - (u - b), bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}

#define V(name) name##_split
#define LOOP WIDE
#define REST pair_rest
#include "pair_formulas.h"
#undef V
#undef LOOP
#undef REST
#ifdef FUSED
#define V(name) name##_fused
#define LOOP FUSED
#define REST FUSED_REST
#include "pair_formulas.h"
#endif

static PairKernel *const *pair_loops = PAIR_LOOPS_split; /* of numbers of two doubles; those of this processor */

static const struct {
    const char *name;
    int operands;
} PAIR_KERNELS[] = {
    {"add", 2}, {"sub", 2}, {"mul", 2}, {"div", 2}, {"larger", 2}, {"smaller", 2}, {"neg", 1}, {"abs", 1}, {"square", 1},
    {"sqrt", 1}, {"exp", 1}, {"expm1", 1}, {"log", 1}, {"log1p", 1}, {"sin", 1}, {"cos", 1}, {"tanh", 1}, {"logistic", 1},
};
enum { PAIR_COUNT = sizeof PAIR_KERNELS / sizeof *PAIR_KERNELS };
enum { ADD, SUB, MUL, DIV, NEG = 6, ABS, SQUARE, SQRT }; /* those that the processor computes */

/* Errors. ------------------------------------------------------------------------------------------------------------ */

enum { SAMPLED = 4096, FREELY = 50 }; /* elements that are compared, and the most all of whose errors count */

typedef struct {
    npy_intp step, next, count; /* every how manyth element is compared, the next one, and how many were */
    int zeros;                  /* whether a zero may be right */
    double check;               /* NaN if some number is not finite, or a zero that may not be right */
    double errors[SAMPLED];
} Sample;

static void sample_begin(Sample *s, npy_intp size, int zeros) {
    s->step = size > SAMPLED ? (size + SAMPLED - 1) / SAMPLED : 1;
    s->next = s->count = 0;
    s->zeros = zeros;
    s->check = 0;
}

/* Look at n values, the first of which is the element `first` of an array, and compare some with their shadows. */
#define LOOK_AT(suffix, type)                                                                               \
    WIDE static double look_at_all_##suffix(npy_intp n, const type *value, const double *hi, const double *lo, int zeros) { \
        double check = 0;                                                                                   \
        if (zeros) for (npy_intp i = 0; i < n; i++) check += (value[i] - value[i]) + (hi[i] - hi[i]) + (lo ? lo[i] - lo[i] : 0); \
        else for (npy_intp i = 0; i < n; i++)                                                               \
            check += (value[i] == 0 ? (double)NAN : value[i] - value[i]) + (hi[i] - hi[i]) + (lo ? lo[i] - lo[i] : 0); \
        return check;                                                                                       \
    }                                                                                                       \
    static void look_at_##suffix(Sample *s, npy_intp first, npy_intp n, const type *value, const double *hi, const double *lo) { \
        s->check += look_at_all_##suffix(n, value, hi, lo, s->zeros);                                       \
        for (; s->next < first + n; s->next += s->step) {                                                   \
            npy_intp i = s->next - first;                                                                   \
            double difference = ((double)value[i] - hi[i]) - (lo ? lo[i] : 0);                              \
            s->errors[s->count++] = difference == 0 ? 0 : fabs(difference / hi[i]);                         \
        }                                                                                                   \
    }
LOOK_AT(f, float)
LOOK_AT(d, double)

/* The error that few of a sample exceed, as `digits.few_exceed` computes it; NaN if there is a special value. */
static double sample_end(Sample *s, double unit) {
    double *e = s->errors, worst = 0;
    if (s->check != 0) return NAN;
    for (npy_intp i = 0; i < s->count; i++) {
        if (!(e[i] < 1)) return NAN;
        worst = e[i] > worst ? e[i] : worst;
    }
    if (s->count <= FREELY || worst <= 2 * unit) return worst;
    npy_intp wanted = s->count - 1 - (s->count - FREELY) / 5, low = 0, high = s->count - 1;
    while (low < high) { /* Hoare's selection */
        double pivot = e[low + (high - low) / 2];
        npy_intp i = low, j = high;
        while (i <= j) {
            while (e[i] < pivot) i++;
            while (pivot < e[j]) j--;
            if (i <= j) {
                double x = e[i];
                e[i++] = e[j];
                e[j--] = x;
            }
        }
        if (wanted <= j) high = j;
        else if (wanted >= i) low = i;
        else break;
    }
    return e[wanted];
}

/* Operands. ---------------------------------------------------------------------------------------------------------- */

enum { PAIR_BLOCK = 256, PAIR_AXES = 32 };

typedef struct {
    int ndim;
    npy_intp shape[PAIR_AXES], size;
} PairShape;

typedef struct {
    const char *data;
    npy_intp strides[PAIR_AXES]; /* along the axes of the result; 0 where the operand is repeated */
    double number;               /* that of an operand without axes */
    const PyArrayObject *array;  /* NULL for a number */
} PairOperand;

static int read_pair_operand(PyObject *x, PairOperand *operand) {
    operand->array = NULL;
    if (PyFloat_Check(x)) { /* and NumPy's float64 */
        operand->number = PyFloat_AS_DOUBLE(x);
        return 1;
    }
    if (!PyArray_Check(x)) return 0;
    PyArrayObject *a = (PyArrayObject *)x;
    if (PyArray_TYPE(a) != NPY_DOUBLE || !PyArray_ISBEHAVED_RO(a) || PyArray_NDIM(a) > PAIR_AXES) return 0;
    if (PyArray_NDIM(a) == 0) operand->number = *(const double *)PyArray_DATA(a);
    else operand->array = a;
    return 1;
}

/* Find the shape to which operands broadcast, and their strides along it; 0 if there is none. */
static int pair_broadcast(PairOperand *operands, int count, PairShape *shape) {
    shape->ndim = 0;
    for (int k = 0; k < count; k++)
        if (operands[k].array && PyArray_NDIM(operands[k].array) > shape->ndim) shape->ndim = PyArray_NDIM(operands[k].array);
    for (int axis = 0; axis < shape->ndim; axis++) shape->shape[axis] = 1;
    for (int k = 0; k < count; k++) {
        const PyArrayObject *a = operands[k].array;
        for (int i = 0, axis = a ? shape->ndim - PyArray_NDIM(a) : 0; a && i < PyArray_NDIM(a); i++, axis++) {
            const npy_intp n = PyArray_DIM(a, i);
            if (n != 1 && shape->shape[axis] != 1 && shape->shape[axis] != n) return 0;
            if (n != 1) shape->shape[axis] = n;
        }
    }
    shape->size = 1;
    int is_flat = 1;
    for (int axis = 0; axis < shape->ndim; axis++) shape->size *= shape->shape[axis];
    for (int k = 0; k < count; k++) {
        const PyArrayObject *a = operands[k].array;
        if (!a) continue;
        operands[k].data = PyArray_BYTES(a);
        is_flat = is_flat && PyArray_IS_C_CONTIGUOUS(a) && PyArray_SIZE(a) == shape->size;
        for (int axis = 0; axis < shape->ndim; axis++) {
            const int i = axis - (shape->ndim - PyArray_NDIM(a));
            operands[k].strides[axis] = i < 0 || PyArray_DIM(a, i) == 1 ? 0 : PyArray_STRIDE(a, i);
        }
    }
    if (is_flat && shape->ndim > 0) {
        shape->ndim = 1;
        shape->shape[0] = shape->size;
        for (int k = 0; k < count; k++) operands[k].strides[0] = sizeof(double);
    }
    return 1;
}

/* Fill `in` with pointers to n elements of each operand, from `data` and `strides` of the last axis on. */
static void pair_block(const PairOperand *operands, int count, char *const *rows, npy_intp first, npy_intp n,
                       int last, double buffers[][PAIR_BLOCK], const double **in) {
    for (int k = 0; k < count; k++) {
        if (!operands[k].array) continue; /* the buffer has the number */
        const npy_intp stride = operands[k].strides[last];
        const char *from = rows[k] + first * stride;
        in[k] = (const double *)from;
        if (stride == sizeof(double)) continue;
        in[k] = buffers[k];
        for (npy_intp i = 0; i < n; i++) buffers[k][i] = *(const double *)(from + i * stride);
    }
}

/* What a result is compared with: an array of doubles or of single precision, or a number. */
typedef struct {
    const PyArrayObject *array;
    double number;
} Value;

/* NaN if a product of numbers that are not zero is zero; otherwise 0. */
#define WRONG_ZEROS(suffix, type)                                                                           \
    WIDE static double wrong_zeros_##suffix(npy_intp n, const type *value, const double *a, const double *b) { \
        double check = 0;                                                                                   \
        for (npy_intp i = 0; i < n; i++) check += ((value[i] == 0) & (a[i] != 0) & (b[i] != 0)) ? (double)NAN : 0; \
        return check;                                                                                       \
    }
WRONG_ZEROS(f, float)
WRONG_ZEROS(d, double)

/* Fill `hi` and `lo`, which is NULL for shadows in doubles, and look at the value if there is a sample. */
static void pair_compute(PairKernel *kernel, const PairOperand *operands, int count, const PairShape *shape, double *hi,
                         double *lo, const Value *value, Sample *sample, double *check, int is_product) {
    const char *data = sample ? PyArray_BYTES((PyArrayObject *)value->array) : NULL;
    const int is_single = sample && PyArray_TYPE(value->array) == NPY_FLOAT;
    double buffers[4][PAIR_BLOCK];
    const double *in[4];
    char *rows[4] = {0};
    npy_intp position[PAIR_AXES] = {0}, at = 0;
    const int last = shape->ndim - 1;
    const npy_intp length = shape->shape[last];
    for (int k = 0; k < count; k++) {
        rows[k] = (char *)operands[k].data;
        if (operands[k].array) continue;
        in[k] = buffers[k];
        for (int i = 0; i < PAIR_BLOCK; i++) buffers[k][i] = operands[k].number;
    }
    while (at < shape->size) {
        for (npy_intp first = 0; first < length; first += PAIR_BLOCK) {
            const npy_intp n = length - first < PAIR_BLOCK ? length - first : PAIR_BLOCK;
            pair_block(operands, count, rows, first, n, last, buffers, in);
            double *low = lo ? lo + at : NULL;
            kernel(n, in, hi + at, low);
            if (sample && is_product) {
                sample->check += is_single ? wrong_zeros_f(n, (const float *)data + at, in[0], in[2])
                                           : wrong_zeros_d(n, (const double *)data + at, in[0], in[2]);
                sample->zeros = 1;
            }
            if (is_single) look_at_f(sample, at, n, (const float *)data + at, hi + at, low);
            else if (sample) look_at_d(sample, at, n, (const double *)data + at, hi + at, low);
            else for (npy_intp i = 0; i < n; i++) *check += (low ? low : hi + at)[i] - (low ? low : hi + at)[i];
            at += n;
        }
        for (int axis = last - 1; axis >= 0; axis--) {
            const int is_inside = ++position[axis] < shape->shape[axis];
            for (int k = 0; k < count; k++)
                if (operands[k].array) rows[k] += operands[k].strides[axis] * (is_inside ? 1 : 1 - shape->shape[axis]);
            if (is_inside) break;
            position[axis] = 0;
        }
    }
}

/* Python. ------------------------------------------------------------------------------------------------------------ */

static PyObject *new_double(double x) {
    PyObject *scalar = PyArrayScalar_New(Double);
    if (scalar) PyArrayScalar_ASSIGN(scalar, Double, x);
    return scalar;
}

PyDoc_STRVAR(pair_kernel_doc, "kernel(name)\n\nReturn the index of a function of numbers of two doubles; None if there is none.");

static PyObject *pair_kernel(PyObject *module, PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    for (int i = 0; i < PAIR_COUNT; i++)
        if (!strcmp(PAIR_KERNELS[i].name, text)) return PyLong_FromLong(i);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(pair_doc, "apply(kernel, value, zeros, unit, *doubles)\n\n"
    "Apply a function to numbers of two doubles, or to doubles, whose shapes broadcast.\n\n"
    "Args:\n"
    "  kernel: an index that `kernel` returned.\n"
    "  value: the result of the function in the program's precision, of which some elements are compared; or None.\n"
    "  zeros: whether a value of zero may be right, and need no closer look.\n"
    "  unit: the unit roundoff of the values.\n"
    "  *doubles: for each operand its first and its second doubles, or its doubles: arrays, or numbers.\n\n"
    "Returns:\n"
    "  The doubles of the result, the first and the second ones; and the relative error that few values exceed, if there are\n"
    "  values. None if some number is huge, tiny or not finite, or an array has another dtype.");

static int read_value(PyObject *x, Value *value) {
    value->array = NULL;
    if (PyFloat_Check(x)) value->number = PyFloat_AS_DOUBLE(x);
    else if (PyArray_IsScalar(x, Float)) value->number = PyArrayScalar_VAL(x, Float);
    else if (!PyArray_Check(x) || !PyArray_ISBEHAVED_RO((PyArrayObject *)x)) return 0;
    else if (PyArray_TYPE((PyArrayObject *)x) != NPY_DOUBLE && PyArray_TYPE((PyArrayObject *)x) != NPY_FLOAT) return 0;
    else value->array = (PyArrayObject *)x;
    return 1;
}

/* Compute a function, and its value's error if there is one; in doubles if `lo` is NULL. Return 1; 0 where this needs the
   general way, -1 for an error. */
static int compute(long code, PairOperand *operands, const Value *value, int zeros, double unit, PyObject **hi, PyObject **lo,
                   double *error) {
    PairKernel *kernel = (lo ? pair_loops : DOUBLE_LOOPS)[code];
    const int count = 2 * PAIR_KERNELS[code].operands;
    PairShape shape;
    int ndim = 0;
    *error = 0;
    for (int k = 0; k < count; k++)
        if (operands[k].array && PyArray_NDIM(operands[k].array) > ndim) ndim = PyArray_NDIM(operands[k].array);
    if (ndim == 0) {
        const double *in[4];
        double high, low = 0;
        for (int k = 0; k < count; k++) in[k] = &operands[k].number;
        kernel(1, in, &high, &low);
        if (low - low != 0 || high - high != 0) return 0;
        if (value) {
            if (value->array) return 0;
            const double difference = (value->number - high) - low;
            *error = difference == 0 ? 0 : fabs(difference / high);
            const int is_zero_right = zeros || (code == MUL && (operands[0].number == 0 || operands[2].number == 0));
            if (!(*error < 1) || (value->number == 0 && !is_zero_right)) return 0;
        }
        *hi = new_double(high);
        if (lo) *lo = new_double(low);
        return *hi && (!lo || *lo) ? 1 : -1;
    }
    if (!pair_broadcast(operands, count, &shape) || shape.size == 0) return 0;
    npy_intp dims[PAIR_AXES];
    if (shape.ndim == ndim) memcpy(dims, shape.shape, ndim * sizeof *dims);
    else /* flat: all have one shape but for axes in front */
        for (int k = 0; k < count; k++)
            if (operands[k].array && PyArray_NDIM(operands[k].array) == ndim)
                memcpy(dims, PyArray_DIMS((PyArrayObject *)operands[k].array), ndim * sizeof *dims);
    if (value && (!value->array || !PyArray_IS_C_CONTIGUOUS(value->array) || PyArray_NDIM(value->array) != ndim
                  || memcmp(PyArray_DIMS((PyArrayObject *)value->array), dims, ndim * sizeof *dims)))
        return 0;
    Sample *sample = value ? malloc(sizeof *sample) : NULL;
    *hi = PyArray_SimpleNew(ndim, dims, NPY_DOUBLE);
    if (lo) *lo = PyArray_SimpleNew(ndim, dims, NPY_DOUBLE);
    if (!*hi || (lo && !*lo) || (value && !sample)) {
        free(sample);
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return -1;
    }
    double check = 0, *high = PyArray_DATA((PyArrayObject *)*hi), *low = lo ? PyArray_DATA((PyArrayObject *)*lo) : NULL;
    Py_BEGIN_ALLOW_THREADS
    if (value) sample_begin(sample, shape.size, zeros);
    pair_compute(kernel, operands, count, &shape, high, low, value, sample, &check, code == MUL && !zeros);
    if (value) *error = check = sample_end(sample, unit);
    Py_END_ALLOW_THREADS
    free(sample);
    return check - check == 0;
}

static PyObject *pair(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    const long code = given > 4 ? PyLong_AsLong(args[0]) : -1;
    const int count = code < 0 || code >= PAIR_COUNT ? 0 : PAIR_KERNELS[code].operands, two = given == 4 + 2 * count;
    if (!count || !(two || given == 4 + count))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "expected a function and its operands");
    const double unit = PyFloat_AsDouble(args[3]);
    if (unit == -1 && PyErr_Occurred()) return NULL;
    PairOperand operands[4] = {0};
    Value value;
    for (int k = 0; k < (int)given - 4; k++)
        if (!read_pair_operand(args[4 + k], &operands[two ? k : 2 * k])) Py_RETURN_NONE;
    const int has_value = args[1] != Py_None;
    if (has_value && !read_value(args[1], &value)) Py_RETURN_NONE;
    PyObject *hi = NULL, *lo = NULL;
    double error;
    const int found = compute(code, operands, has_value ? &value : NULL, args[2] == Py_True, unit, &hi, two ? &lo : NULL, &error);
    if (found == 1 && two) return has_value ? Py_BuildValue("(NNd)", hi, lo, error) : Py_BuildValue("(NN)", hi, lo);
    if (found == 1) return has_value ? Py_BuildValue("(Nd)", hi, error) : Py_BuildValue("(N)", hi);
    Py_XDECREF(hi);
    Py_XDECREF(lo);
    if (found < 0) return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(pair_error_doc, "error(value, zeros, unit, hi, lo)\n\n"
    "Return the relative error that few elements of `value` exceed, whose exact numbers are `hi + lo`.\n\n"
    "Args:\n"
    "  value: an array or a number of single or double precision.\n"
    "  zeros: whether a value of zero may be right, and need no closer look.\n"
    "  unit: the unit roundoff of the values.\n"
    "  hi: doubles of the same shape.\n"
    "  lo: further ones, or None.\n\n"
    "Returns:\n"
    "  The error; None if it is 1 or more, if some number is not finite, or for other arrays than contiguous ones.");

static PyObject *pair_error(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    if (given != 5) return PyErr_Format(PyExc_TypeError, "expected five arguments");
    PairOperand hi, lo = {0}, value = {0};
    const int zeros = args[1] == Py_True, has_lo = args[4] != Py_None;
    const double unit = PyFloat_AsDouble(args[2]);
    if (unit == -1 && PyErr_Occurred()) return NULL;
    if (!read_pair_operand(args[3], &hi) || (has_lo && !read_pair_operand(args[4], &lo))) Py_RETURN_NONE;
    const PyArrayObject *array = PyArray_Check(args[0]) ? (PyArrayObject *)args[0] : NULL;
    if (!hi.array) {
        if (lo.array) Py_RETURN_NONE;
        if (PyArray_IsScalar(args[0], Float)) value.number = PyArrayScalar_VAL(args[0], Float);
        else if (!read_pair_operand(args[0], &value) || value.array) Py_RETURN_NONE;
        const double difference = (value.number - hi.number) - (has_lo ? lo.number : 0);
        const double error = difference == 0 ? 0 : fabs(difference / hi.number);
        if (!(error < 1) || (value.number == 0 && !zeros)) Py_RETURN_NONE;
        return PyFloat_FromDouble(error);
    }
    const npy_intp size = PyArray_SIZE((PyArrayObject *)hi.array);
    const int type = array ? PyArray_TYPE(array) : NPY_NOTYPE;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || PyArray_SIZE((PyArrayObject *)array) != size || size == 0
        || !PyArray_ISCARRAY_RO(array) || !PyArray_IS_C_CONTIGUOUS(hi.array)
        || (has_lo && (!lo.array || PyArray_SIZE((PyArrayObject *)lo.array) != size || !PyArray_IS_C_CONTIGUOUS(lo.array))))
        Py_RETURN_NONE;
    Sample *sample = malloc(sizeof *sample);
    if (!sample) return PyErr_NoMemory();
    const double *high = PyArray_DATA((PyArrayObject *)hi.array), *low = has_lo ? PyArray_DATA((PyArrayObject *)lo.array) : NULL;
    double error;
    Py_BEGIN_ALLOW_THREADS
    sample_begin(sample, size, zeros);
    if (type == NPY_FLOAT) look_at_f(sample, 0, size, PyArray_DATA((PyArrayObject *)array), high, low);
    else look_at_d(sample, 0, size, PyArray_DATA((PyArrayObject *)array), high, low);
    error = sample_end(sample, unit);
    Py_END_ALLOW_THREADS
    free(sample);
    if (error != error) Py_RETURN_NONE;
    return PyFloat_FromDouble(error);
}

/* Add up the rows of n by `inner` numbers. */
WIDE static void pair_total_of_rows(const double *hi, const double *lo, npy_intp n, npy_intp inner, double *high, double *low) {
    for (npy_intp i = 0; i < inner; i++) high[i] = low[i] = 0;
    for (npy_intp k = 0; k < n; k++) {
        const double *a = hi + k * inner, *b = lo + k * inner;
        EACH(i, inner) {
            Pair y = pair_add((Pair){high[i], low[i]}, (Pair){a[i], b[i]});
            high[i] = y.hi;
            low[i] = y.lo;
        }
    }
}

enum { PAIR_CHAINS = 16 };

/* Add up n numbers: 16 interleaved chains, and then these. */
WIDE static void pair_total_of_row(const double *hi, const double *lo, npy_intp n, double *high, double *low) {
    double a[PAIR_CHAINS] = {0}, b[PAIR_CHAINS] = {0};
    for (npy_intp k = 0; k < n; k += PAIR_CHAINS) {
        double c[PAIR_CHAINS] = {0}, d[PAIR_CHAINS] = {0};
        const npy_intp some = n - k < PAIR_CHAINS ? n - k : PAIR_CHAINS;
        memcpy(c, hi + k, some * sizeof *c);
        memcpy(d, lo + k, some * sizeof *d);
        for (int i = 0; i < PAIR_CHAINS; i++) {
            Pair y = pair_add((Pair){a[i], b[i]}, (Pair){c[i], d[i]});
            a[i] = y.hi;
            b[i] = y.lo;
        }
    }
    for (int half = PAIR_CHAINS / 2; half; half /= 2) {
        for (int i = 0; i < half; i++) {
            Pair y = pair_add((Pair){a[i], b[i]}, (Pair){a[i + half], b[i + half]});
            a[i] = y.hi;
            b[i] = y.lo;
        }
    }
    *high = a[0];
    *low = b[0];
}

PyDoc_STRVAR(pair_total_doc, "total(hi, lo)\n\n"
    "Return the sums along the middle axis of numbers of two doubles, as two arrays of two axes; None if some number is not\n"
    "finite. `hi` and `lo` are contiguous arrays of three axes.");

static PyObject *pair_total(PyObject *module, PyObject *args) {
    PyArrayObject *hi, *lo;
    if (!PyArg_ParseTuple(args, "O!O!", &PyArray_Type, &hi, &PyArray_Type, &lo)) return NULL;
    if (PyArray_NDIM(hi) != 3 || PyArray_TYPE(hi) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(hi) || PyArray_TYPE(lo) != NPY_DOUBLE
        || !PyArray_ISCARRAY_RO(lo) || !PyArray_SAMESHAPE(hi, lo))
        return PyErr_Format(PyExc_ValueError, "expected two contiguous arrays of doubles of one shape, with three axes");
    const npy_intp outer = PyArray_DIM(hi, 0), n = PyArray_DIM(hi, 1), inner = PyArray_DIM(hi, 2);
    npy_intp dims[2] = {outer, inner};
    PyObject *high = PyArray_SimpleNew(2, dims, NPY_DOUBLE), *low = PyArray_SimpleNew(2, dims, NPY_DOUBLE);
    if (!high || !low) {
        Py_XDECREF(high);
        Py_XDECREF(low);
        return NULL;
    }
    const double *a = PyArray_DATA(hi), *b = PyArray_DATA(lo);
    double *x = PyArray_DATA((PyArrayObject *)high), *y = PyArray_DATA((PyArrayObject *)low), check = 0;
    Py_BEGIN_ALLOW_THREADS
    for (npy_intp k = 0; k < outer; k++) {
        if (inner == 1) pair_total_of_row(a + k * n, b + k * n, n, x + k, y + k);
        else pair_total_of_rows(a + k * n * inner, b + k * n * inner, n, inner, x + k * inner, y + k * inner);
    }
    for (npy_intp i = 0; i < outer * inner; i++) check += y[i] - y[i];
    Py_END_ALLOW_THREADS
    if (check != 0) {
        Py_DECREF(high);
        Py_DECREF(low);
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(NN)", high, low);
}

PyDoc_STRVAR(pair_tables_doc, "use_tables(numbers)\n\n"
    "Set the constants of elementary functions: log(2)/64 in 3 pieces, log(2) in 2, pi/256 in 4; then pairs: the powers\n"
    "2**(j/64), the logarithms of j/64 for j < 96, and the sines and the cosines of 512 multiples of pi/256.");

static PyObject *pair_tables(PyObject *module, PyObject *numbers) {
    PyArrayObject *a = (PyArrayObject *)numbers;
    if (!PyArray_Check(numbers) || PyArray_TYPE(a) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(a) || PyArray_NBYTES(a) != sizeof pair_constants)
        return PyErr_Format(PyExc_ValueError, "expected a vector of %zu doubles", sizeof pair_constants / sizeof(double));
    memcpy(&pair_constants, PyArray_DATA(a), sizeof pair_constants);
#ifdef FUSED
    if (HAS_FUSED()) pair_loops = PAIR_LOOPS_fused;
#endif
    Py_RETURN_NONE;
}

/* Results with shadows. -------------------------------------------------------------------------------------------------- */

/* What `use_types` is passed: the types, and where their instances have their attributes. */
static struct {
    PyTypeObject *tracer, *made, *accuracy, *two, *array;
    PyObject *nothing;
    Py_ssize_t host_value, weak_type; /* of an array */
    Py_ssize_t trace, primal, made_at, shadow, known, origin; /* of a tracer */
    Py_ssize_t depth, is_exact, location, operands, params, phase, primitive, values; /* of an expression */
} shadowed;

static Py_ssize_t slot_of(PyTypeObject *type, const char *name) {
    PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t offset = -1;
    if (found && Py_IS_TYPE(found, &PyMemberDescr_Type)) offset = ((PyMemberDescrObject *)found)->d_member->offset;
    else if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "%s has no slot %s", type->tp_name, name);
    Py_XDECREF(found);
    return offset;
}

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

static void set_slot(PyObject *object, Py_ssize_t offset, PyObject *value) { SLOT(object, offset) = Py_NewRef(value); }

PyDoc_STRVAR(use_types_doc, "use_types(tracer, made, accuracy, two, array, nothing)\n\n"
    "Set the types of what `finish` makes, of numbers of two doubles and of arrays, and the empty dictionary of a value that\n"
    "lost no digits. Tracers, expressions and arrays have slots, and the others are tuples.");

static PyObject *use_types(PyObject *module, PyObject *args) {
    PyTypeObject *tracer, *made, *accuracy, *two, *array, *type = &PyType_Type;
    PyObject *nothing;
    if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!", type, &tracer, type, &made, type, &accuracy, type, &two, type, &array, &PyDict_Type, &nothing))
        return NULL;
    if (!PyType_IsSubtype(accuracy, &PyTuple_Type) || !PyType_IsSubtype(two, &PyTuple_Type))
        return PyErr_Format(PyExc_TypeError, "expected a type of tuples");
    const char *names[] = {"_trace", "primal", "made_at", "wide", "accuracy", "made",
                           "depth", "exact", "location", "operands", "params", "phase", "primitive", "values"};
    Py_ssize_t *places[] = {&shadowed.trace, &shadowed.primal, &shadowed.made_at, &shadowed.shadow, &shadowed.known,
                            &shadowed.origin, &shadowed.depth, &shadowed.is_exact, &shadowed.location, &shadowed.operands,
                            &shadowed.params, &shadowed.phase, &shadowed.primitive, &shadowed.values};
    for (int i = 0; i < 14; i++)
        if ((*places[i] = slot_of(i < 6 ? tracer : made, names[i])) < 0) return NULL;
    if ((shadowed.host_value = slot_of(array, "_host_value")) < 0 || (shadowed.weak_type = slot_of(array, "weak_type")) < 0) return NULL;
    shadowed.two = (PyTypeObject *)Py_NewRef(two);
    shadowed.array = (PyTypeObject *)Py_NewRef(array);
    shadowed.tracer = (PyTypeObject *)Py_NewRef(tracer);
    shadowed.made = (PyTypeObject *)Py_NewRef(made);
    shadowed.accuracy = (PyTypeObject *)Py_NewRef(accuracy);
    shadowed.nothing = Py_NewRef(nothing);
    Py_RETURN_NONE;
}

enum { ZEROS = 1, KEEPS = 2, SUMS = 4, ADVISED = 8, WEAK = 16 }; /* what is known of an operation; see `step_doc` */

/* What is known of a result: its expression's operands, how deep it is, whether it is exact, and its losses. */
typedef struct {
    PyObject *tracers, *values, *operands;
    PyObject *losses, *scaled; /* the losses are borrowed, or these */
    double error, least;
    long depth, deepest;
    int is_exact, flags;
} Result;

/* The largest absolute error of the elements of a value; -1 where this needs the general way. */
static double absolute_error(PyObject *tracer, PyObject *value) {
    PyObject *wide = SLOT(tracer, shadowed.shadow);
    const int is_two = PyTuple_Check(wide), is_array = PyArray_Check(value);
    const int is_single = is_array ? PyArray_TYPE((PyArrayObject *)value) == NPY_FLOAT : PyArray_IsScalar(value, Float);
    PairOperand hi = {0}, lo = {0}, number = {0};
    if (!read_pair_operand(is_two ? PyTuple_GET_ITEM(wide, 0) : wide, &hi)) return -1;
    if (is_two && !read_pair_operand(PyTuple_GET_ITEM(wide, 1), &lo)) return -1;
    if (is_single && !is_array) number.number = PyArrayScalar_VAL(value, Float);
    else if (!is_single && !read_pair_operand(value, &number)) return -1;
    if (!hi.array) {
        const double size = lo.array || is_array ? NAN : fabs((number.number - hi.number) - lo.number);
        return size == size ? size : -1;
    }
    const npy_intp size = PyArray_SIZE((PyArrayObject *)hi.array);
    if (!is_array || size > SAMPLED || PyArray_SIZE((PyArrayObject *)value) != size || !PyArray_ISCARRAY_RO((PyArrayObject *)value)
        || !PyArray_IS_C_CONTIGUOUS(hi.array))
        return -1;
    if (lo.array && (PyArray_SIZE((PyArrayObject *)lo.array) != size || !PyArray_IS_C_CONTIGUOUS(lo.array))) return -1;
    const void *values = PyArray_DATA((PyArrayObject *)value);
    const double *high = PyArray_DATA((PyArrayObject *)hi.array), *low = lo.array ? PyArray_DATA((PyArrayObject *)lo.array) : NULL;
    double largest = 0;
    for (npy_intp i = 0; i < size; i++) {
        const double x = is_single ? ((const float *)values)[i] : ((const double *)values)[i];
        const double error = fabs((x - high[i]) - (low ? low[i] : lo.number));
        if (!(error <= largest)) largest = error; /* NaN stays: nothing is at most NaN */
        if (largest != largest) return -1;
    }
    return largest;
}

static PyObject *host_value_of(PyObject *array);

/* Describe a result by its operands. Return 1; 0 where this needs the general way, -1 for an error. */
static int describe(Result *r) {
    PyObject *dominant = NULL;
    double largest = -1;
    int losing = 0, found = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(r->tracers); i++) {
        PyObject *tracer = PyList_GET_ITEM(r->tracers, i), *operand = PyList_GET_ITEM(r->values, i);
        if (Py_IS_TYPE(tracer, shadowed.tracer)) {
            PyObject *known = SLOT(tracer, shadowed.known), *made = SLOT(tracer, shadowed.origin);
            if (!known || !made) return 0;
            const double unit = PyFloat_AsDouble(PyTuple_GET_ITEM(known, 1));
            r->least = unit < r->least ? unit : r->least;
            losing = losing || PyDict_GET_SIZE(PyTuple_GET_ITEM(known, 2));
            found++;
            operand = tracer;
            if (Py_IS_TYPE(made, shadowed.made)) {
                const long below = PyLong_AsLong(SLOT(made, shadowed.depth));
                if (below >= r->deepest) return 0;
                r->depth = below > r->depth ? below : r->depth;
                r->is_exact = r->is_exact && SLOT(made, shadowed.is_exact) == Py_True;
                operand = made;
            }
        } else if (tracer != Py_None) {
            return 0;
        }
        PyList_SET_ITEM(r->operands, i, Py_NewRef(operand));
    }
    r->losses = shadowed.nothing;
    for (Py_ssize_t i = 0; losing && i < PyList_GET_SIZE(r->tracers); i++) { /* the operand whose error dominates */
        PyObject *tracer = PyList_GET_ITEM(r->tracers, i);
        if (tracer == Py_None) continue;
        double size = PyFloat_AsDouble(PyTuple_GET_ITEM(SLOT(tracer, shadowed.known), 0));
        if (found > 1 && r->flags & SUMS) {
            PyObject *value = host_value_of(PyList_GET_ITEM(r->values, i));
            if (!value) return -1;
            size = absolute_error(tracer, value);
            Py_DECREF(value);
            if (size < 0) return 0;
        }
        if (size > largest) {
            largest = size;
            dominant = tracer;
        }
    }
    if (dominant) r->losses = PyTuple_GET_ITEM(SLOT(dominant, shadowed.known), 2);
    return PyErr_Occurred() ? -1 : 1;
}

/* Whether all records of losses have advice already. */
static int are_advised(PyObject *losses) {
    PyObject *key, *digits;
    Py_ssize_t position = 0;
    while (PyDict_Next(losses, &position, &key, &digits)) {
        if (key == Py_None) continue;
        PyObject *advice = PyObject_GetAttrString(key, "advice");
        const int is_known = advice && PyObject_IsTrue(advice) == 1;
        Py_XDECREF(advice);
        if (!is_known) return 0;
    }
    return 1;
}

/* Whether the losses of the operands account for a result's error, as `observations.weigh` tells it. */
static int accounts(Result *r, double few) {
    PyObject *key, *digits;
    Py_ssize_t position = 0;
    double before = 0;
    if (!PyDict_GET_SIZE(r->losses) && r->error <= few * r->least) return 1;
    while (PyDict_Next(r->losses, &position, &key, &digits)) before += PyFloat_AsDouble(digits);
    const double lost = r->error > r->least ? log10(r->error / r->least) : 0, least = log10(few), more = lost - before;
    if (more >= least || (r->flags & ADVISED && r->error > 2 * r->least && !are_advised(r->losses))) return 0;
    if (more > -least) return 1;
    PyObject *operands_losses = r->losses;
    r->losses = shadowed.nothing;
    if (lost < least) return 1;
    if (!(r->scaled = r->losses = PyDict_New())) return 0;
    position = 0;
    while (PyDict_Next(operands_losses, &position, &key, &digits)) {
        PyObject *share = PyFloat_FromDouble(PyFloat_AsDouble(digits) * lost / before);
        const int is_set = share && PyDict_SetItem(r->scaled, key, share) == 0;
        Py_XDECREF(share);
        if (!is_set) return 0;
    }
    return 1;
}

/* Return the tracer of a result with its shadow; NULL without an error where this needs the general way. */
static PyObject *traced(Result *r, PyObject *trace, PyObject *primitive, PyObject *params, PyObject *out, PyObject *wide,
                        PyObject *location, PyObject *phase, double few) {
    PyObject *operands = r->operands = PyList_New(PyList_GET_SIZE(r->tracers));
    if (!operands) return NULL;
    if (describe(r) < 1 || !accounts(r, few)) {
        Py_DECREF(operands);
        Py_CLEAR(r->scaled);
        return NULL;
    }
    PyObject *known = shadowed.accuracy->tp_alloc(shadowed.accuracy, 3), *made = shadowed.made->tp_alloc(shadowed.made, 0);
    PyObject *tracer = shadowed.tracer->tp_alloc(shadowed.tracer, 0), *first = PyFloat_FromDouble(r->error);
    PyObject *second = PyFloat_FromDouble(r->least), *deep = PyLong_FromLong(r->depth + 1);
    if (!known || !made || !tracer || !first || !second || !deep) {
        Py_XDECREF(known);
        Py_XDECREF(made);
        Py_XDECREF(tracer);
        Py_XDECREF(first);
        Py_XDECREF(second);
        Py_XDECREF(deep);
        Py_DECREF(operands);
        Py_CLEAR(r->scaled);
        return NULL;
    }
    PyTuple_SET_ITEM(known, 0, first);
    PyTuple_SET_ITEM(known, 1, second);
    PyTuple_SET_ITEM(known, 2, r->scaled ? r->scaled : Py_NewRef(r->losses));
    SLOT(made, shadowed.depth) = deep;
    SLOT(made, shadowed.operands) = operands;
    set_slot(made, shadowed.is_exact, r->is_exact ? Py_True : Py_False);
    set_slot(made, shadowed.location, location);
    set_slot(made, shadowed.params, params);
    set_slot(made, shadowed.phase, phase);
    set_slot(made, shadowed.primitive, primitive);
    set_slot(made, shadowed.values, r->values);
    set_slot(tracer, shadowed.trace, trace);
    set_slot(tracer, shadowed.primal, out);
    set_slot(tracer, shadowed.made_at, location);
    set_slot(tracer, shadowed.shadow, wide);
    SLOT(tracer, shadowed.known) = known;
    SLOT(tracer, shadowed.origin) = made;
    return tracer;
}

PyDoc_STRVAR(finish_doc, "finish(trace, primitive, flags, tracers, values, params, out, wide, error, unit, location, phase, deepest, few)\n\n"
    "Return the tracer of a result whose error that of its operands accounts for; None where this needs a closer look.\n\n"
    "Args:\n"
    "  trace: that of the tracer.\n"
    "  primitive, params: the operation.\n"
    "  flags: what is known of it; see `step`.\n"
    "  tracers: a list: the tracers of the operands that have shadows, None for the others.\n"
    "  values: a list: the operands.\n"
    "  out, wide: the result and its shadow.\n"
    "  error: its relative error.\n"
    "  unit: the unit roundoff of its dtype.\n"
    "  location, phase: the user's line, and the pass of differentiation.\n"
    "  deepest: from how many operations behind each other on an expression is cut.\n"
    "  few: up to how many units an error counts as none.");

static PyObject *finish(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    if (given != 14 || !PyList_Check(args[3]) || !PyList_Check(args[4]) || PyList_GET_SIZE(args[3]) != PyList_GET_SIZE(args[4])
        || !shadowed.tracer)
        return PyErr_Format(PyExc_TypeError, "expected 14 arguments, among them two lists");
    const int flags = (int)PyLong_AsLong(args[2]);
    Result r = {.tracers = args[3], .values = args[4], .error = PyFloat_AsDouble(args[8]), .least = PyFloat_AsDouble(args[9]),
                .deepest = PyLong_AsLong(args[12]), .is_exact = (flags & KEEPS) != 0, .flags = flags};
    const double few = PyFloat_AsDouble(args[13]);
    if (PyErr_Occurred()) return NULL;
    PyObject *tracer = traced(&r, args[0], args[1], args[5], args[6], args[7], args[10], args[11], few);
    if (!tracer && !PyErr_Occurred()) Py_RETURN_NONE;
    return tracer;
}

static PyObject *host_value_of(PyObject *array) {
    PyObject *held = SLOT(array, shadowed.host_value);
    if (held && (PyFloat_Check(held) || PyArray_Check(held) || PyArray_IsScalar(held, Float))) return Py_NewRef(held);
    return PyObject_GetAttrString(array, "_value");
}

/* Read the shadow of an operand; 0 where this needs the general way. */
static int read_shadow(PyObject *tracer, PyObject *operand, int is_two, int is_single, PairOperand *found) {
    found[1] = (PairOperand){0};
    if (tracer == Py_None) {
        if (PyFloat_CheckExact(operand)) found->number = PyFloat_AS_DOUBLE(operand);
        else if (PyLong_CheckExact(operand)) found->number = PyLong_AsDouble(operand);
        else return 0;
        if (is_single) found->number = (float)found->number;
        found->array = NULL;
        return 1;
    }
    PyObject *wide = SLOT(tracer, shadowed.shadow);
    if (is_two)
        return PyTuple_Check(wide) && read_pair_operand(PyTuple_GET_ITEM(wide, 0), found)
               && read_pair_operand(PyTuple_GET_ITEM(wide, 1), found + 1);
    return read_pair_operand(wide, found);
}

enum { FEW_ELEMENTS = 2048 }; /* of an array on which NumPy is called here; threads may compute with more */

/* Read the NumPy value of an operand, which is an array or a Python number, into `values`, and whether all arrays before and
   this one are weak. Return 1 for single precision, 2 for doubles, 0 for a number, -1 where this needs the general way. */
static int read_operand(PyObject *x, PyObject **value, int *is_weak) {
    if (PyFloat_CheckExact(x) || PyLong_CheckExact(x)) {
        *value = x;
        return 0;
    }
    if (!Py_IS_TYPE(x, shadowed.array)) return -1;
    *value = SLOT(x, shadowed.host_value);
    *is_weak = *is_weak && SLOT(x, shadowed.weak_type) == Py_True;
    if (!*value) return -1;
    if (PyArray_IsScalar(*value, Float)) return 1;
    if (PyArray_IsScalar(*value, Double)) return 2;
    if (!PyArray_CheckExact(*value) || PyArray_SIZE((PyArrayObject *)*value) > FEW_ELEMENTS) return -1;
    const int type = PyArray_TYPE((PyArrayObject *)*value);
    return type == NPY_FLOAT ? 1 : type == NPY_DOUBLE ? 2 : -1;
}

static double scalar_of(PyObject *x) {
    if (PyArray_IsScalar(x, Float)) return PyArrayScalar_VAL(x, Float);
    return PyFloat_Check(x) ? PyFloat_AS_DOUBLE(x) : PyLong_AsDouble(x);
}

/* Return the NumPy scalar that an operation of the processor returns for numbers x and y of single or double precision. */
static PyObject *computed(long code, double x, double y, int is_single) {
    double out;
    switch (code) {
    case ADD: out = is_single ? (float)x + (float)y : x + y; break;
    case SUB: out = is_single ? (float)x - (float)y : x - y; break;
    case MUL: out = is_single ? (float)x * (float)y : x * y; break;
    case DIV: out = is_single ? (float)x / (float)y : x / y; break;
    case NEG: out = -x; break;
    case ABS: out = fabs(x); break;
    case SQUARE: out = is_single ? (float)x * (float)x : x * x; break;
    default: out = is_single ? sqrtf((float)x) : sqrt(x); break;
    }
    if (!is_single) return new_double(out);
    PyObject *scalar = PyArrayScalar_New(Float);
    if (scalar) PyArrayScalar_ASSIGN(scalar, Float, (float)out);
    return scalar;
}

/* Evaluate an operation on arrays of one dtype and numbers. Return the NumPy value; NULL where this needs the general way. */
static PyObject *evaluated(long code, PyObject *values, PyObject *silently, PyObject *rule, int *is_weak, int *is_single) {
    const Py_ssize_t count = PyList_GET_SIZE(values);
    PyObject *hosts[2] = {NULL, NULL};
    int kinds[2] = {0, 0};
    *is_weak = 1;
    for (Py_ssize_t i = 0; i < count; i++)
        if ((kinds[i] = read_operand(PyList_GET_ITEM(values, i), hosts + i, is_weak)) < 0) return NULL;
    const int kind = kinds[0] ? kinds[0] : kinds[1];
    if (!kind || (kinds[0] && kinds[1] && kinds[0] != kinds[1])) return NULL;
    *is_single = kind == 1;
    const int is_scalar = !PyArray_Check(hosts[0]) && !(hosts[1] && PyArray_Check(hosts[1]));
    PyObject *out;
    if (is_scalar && (code <= DIV || (code >= NEG && code <= SQRT))) {
        const double x = scalar_of(hosts[0]), y = count > 1 ? scalar_of(hosts[1]) : 0;
        out = PyErr_Occurred() ? NULL : computed(code, x, y, *is_single);
    } else {
        out = PyObject_CallFunctionObjArgs(silently, rule, hosts[0], hosts[1], NULL);
    }
    if (!out) {
        PyErr_Clear(); /* the general way explains the error */
        return NULL;
    }
    const int type = PyArray_Check(out) ? PyArray_TYPE((PyArrayObject *)out) : PyArray_IsScalar(out, Float) ? NPY_FLOAT : PyArray_IsScalar(out, Double) ? NPY_DOUBLE : NPY_NOTYPE;
    if (type != (*is_single ? NPY_FLOAT : NPY_DOUBLE)) Py_CLEAR(out);
    return out;
}

/* What `use_state` is passed, and the names of attributes. */
static struct {
    PyObject *state, *here, *internal, *forward, *few, *no_params;
    PyObject *trace, *source_loc, *scope, *phase, *silently, *evaluated, *weighed, *know;
    Py_ssize_t known, computes, two;                  /* of a trace */
    Py_ssize_t kernel, flags, rule, operation;        /* of what is known of an operation */
    long deepest;
} running;

PyDoc_STRVAR(use_state_doc, "use_state(state, here, internal, forward, trace, known, deepest, few)\n\n"
    "Set what `step` needs to know of the program that runs.\n\n"
    "Args:\n"
    "  state: the state of the thread, whose attributes are those of `core.trace.state`.\n"
    "  here: returns the user's line. `internal` is a dictionary of files: whether they are passed over.\n"
    "  forward: the pass of differentiation outside of scopes.\n"
    "  trace, known: the types of traces, and of what is known of an operation; both have slots.\n"
    "  deepest: from how many operations behind each other on an expression is cut.\n"
    "  few: up to how many units an error counts as none.");

static PyObject *use_state(PyObject *module, PyObject *args) {
    PyTypeObject *trace, *known, *type = &PyType_Type;
    PyObject *state, *here, *internal, *forward, *few;
    long deepest;
    if (!PyArg_ParseTuple(args, "OOO!OO!O!lO!", &state, &here, &PyDict_Type, &internal, &forward, type, &trace, type, &known, &deepest, &PyFloat_Type, &few))
        return NULL;
    const char *names[] = {"known", "computes", "two", "kernel", "flags", "rule", "primitive"};
    Py_ssize_t *offsets[] = {&running.known, &running.computes, &running.two, &running.kernel, &running.flags, &running.rule, &running.operation};
    for (int i = 0; i < 7; i++)
        if ((*offsets[i] = slot_of(i < 3 ? trace : known, names[i])) < 0) return NULL;
    const char *attributes[] = {"trace", "source_loc", "scope", "phase", "silently", "_evaluated", "_weighed", "know"};
    PyObject **strings[] = {&running.trace, &running.source_loc, &running.scope, &running.phase, &running.silently, &running.evaluated, &running.weighed, &running.know};
    for (int i = 0; i < 8; i++)
        if (!(*strings[i] = PyUnicode_InternFromString(attributes[i]))) return NULL;
    if (!(running.no_params = PyDict_New())) return NULL;
    running.here = Py_NewRef(here);
    running.internal = Py_NewRef(internal);
    running.forward = Py_NewRef(forward);
    running.few = Py_NewRef(few);
    running.deepest = deepest;
    running.state = Py_NewRef(state);
    Py_RETURN_NONE;
}

/* Return the user's line that is being run, as `source.here` returns it. */
static PyObject *location_now(void) {
    PyObject *location = PyObject_GetAttr(running.state, running.source_loc);
    if (location != Py_None) return location;
    Py_DECREF(location);
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef(PyEval_GetFrame());
    while (frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyObject *is_internal = PyDict_GetItemWithError(running.internal, code->co_filename);
        if (is_internal == Py_False) {
            PyObject *found = Py_BuildValue("(Ni)", code, PyFrame_GetLasti(frame));
            Py_DECREF(frame);
            return found;
        }
        Py_DECREF(code);
        PyFrameObject *back = is_internal ? PyFrame_GetBack(frame) : NULL;
        Py_DECREF(frame);
        if (!is_internal) return PyErr_Occurred() ? NULL : PyObject_CallNoArgs(running.here); /* a file that is new */
        frame = back;
    }
    Py_RETURN_NONE;
}

static PyObject *phase_now(void) {
    PyObject *scope = PyObject_GetAttr(running.state, running.scope);
    if (!scope || scope == Py_None) {
        Py_XDECREF(scope);
        return scope ? Py_NewRef(running.forward) : NULL;
    }
    PyObject *phase = PyObject_GetAttr(scope, running.phase);
    Py_DECREF(scope);
    return phase;
}

/* Evaluate an operation: set its value and, where its shadow does not need the general way, the tracer of its result. Return -1
   for an error. */
static int take_step(PyObject *trace, PyObject *known, long code, PyObject *args, PyObject **out, PyObject **found) {
    const Py_ssize_t count = PyTuple_GET_SIZE(args);
    const long flags = PyLong_AsLong(SLOT(known, running.flags));
    const int two = SLOT(trace, running.two) == Py_True;
    PyObject *tracers = PyList_New(count), *values = PyList_New(count), *value = NULL, *hi = NULL, *lo = NULL, *wide = NULL;
    PyObject *silently = PyObject_GetAttr(running.state, running.silently), *location = NULL, *phase = NULL;
    for (Py_ssize_t i = 0; tracers && values && i < count; i++) {
        PyObject *x = PyTuple_GET_ITEM(args, i);
        const int is_traced = Py_IS_TYPE(x, shadowed.tracer);
        PyList_SET_ITEM(tracers, i, Py_NewRef(is_traced ? x : Py_None));
        PyList_SET_ITEM(values, i, Py_NewRef(is_traced ? SLOT(x, shadowed.primal) : x));
    }
    int is_weak, is_single;
    if (!tracers || !values || !silently || !(value = evaluated(code, values, silently, SLOT(known, running.rule), &is_weak, &is_single))) goto end;
    if (!(*out = shadowed.array->tp_alloc(shadowed.array, 0))) goto end;
    set_slot(*out, shadowed.host_value, value);
    set_slot(*out, shadowed.weak_type, is_weak && flags & WEAK ? Py_True : Py_False);
    PairOperand operands[4];
    Value result;
    if (!read_value(value, &result)) goto end;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!read_shadow(PyList_GET_ITEM(tracers, i), PyTuple_GET_ITEM(args, i), two, is_single, operands + 2 * i)) goto end;
    Result r = {.tracers = tracers, .values = values, .least = is_single ? 0x1p-24 : 0x1p-53, .deepest = running.deepest,
                .is_exact = (flags & KEEPS) != 0, .flags = (int)flags};
    if (compute(code, operands, &result, flags & ZEROS, r.least, &hi, two ? &lo : NULL, &r.error) != 1) goto end;
    wide = two ? shadowed.two->tp_alloc(shadowed.two, 2) : Py_NewRef(hi);
    if (!wide) goto end;
    if (two) {
        PyTuple_SET_ITEM(wide, 0, Py_NewRef(hi));
        PyTuple_SET_ITEM(wide, 1, Py_NewRef(lo));
    }
    if ((location = location_now()) && (phase = phase_now()))
        *found = traced(&r, trace, SLOT(known, running.operation), running.no_params, *out, wide, location, phase, PyFloat_AS_DOUBLE(running.few));
    if (*found || PyErr_Occurred()) goto end;
    PyObject *error = PyFloat_FromDouble(r.error);
    if (error) *found = PyObject_CallMethodObjArgs(trace, running.weighed, known, tracers, values, *out, wide, error, NULL);
    Py_XDECREF(error);
end:
    Py_XDECREF(tracers);
    Py_XDECREF(values);
    Py_XDECREF(value);
    Py_XDECREF(hi);
    Py_XDECREF(lo);
    Py_XDECREF(wide);
    Py_XDECREF(silently);
    Py_XDECREF(location);
    Py_XDECREF(phase);
    return PyErr_Occurred() ? -1 : 0;
}

PyDoc_STRVAR(step_doc, "step(trace, known, args)\n\n"
    "Return the result of an operation with its shadow.\n\n"
    "Args:\n"
    "  trace: that of the tracers.\n"
    "  known: what is known of the operation: `kernel`, the index of its function; `rule`, which evaluates it on NumPy values;\n"
    "    `primitive`; and `flags`, a sum: 1, a result of zero may be right; 2, results are elements of operands; 4, it is a\n"
    "    sum; 8, there is advice for it; 16, the result is weakly typed if the operands are.\n"
    "  args: a tuple of the operands.\n\n"
    "What needs the general way is the result of `trace._evaluated(known, args, {}, value)`. The value is None if it needs this\n"
    "way, too.");

static PyObject *stepped(PyObject *trace, PyObject *known, PyObject *args) {
    PyObject *kernel = SLOT(known, running.kernel), *out = NULL, *tracer = NULL, *result = NULL;
    const long code = PyLong_Check(kernel) ? PyLong_AsLong(kernel) : -1;
    if (code < 0 || code >= PAIR_COUNT || PAIR_KERNELS[code].operands != PyTuple_GET_SIZE(args))
        return PyErr_Format(PyExc_ValueError, "expected the operands of a function");
    if (take_step(trace, known, code, args, &out, &tracer) == 0) {
        if (tracer) result = Py_NewRef(tracer);
        else result = PyObject_CallMethodObjArgs(trace, running.evaluated, known, args, running.no_params, out ? out : Py_None, NULL);
    }
    Py_XDECREF(out);
    Py_XDECREF(tracer);
    return result;
}

static PyObject *step(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    if (given != 3 || !PyTuple_Check(args[2]) || !shadowed.tracer || !running.state)
        return PyErr_Format(PyExc_TypeError, "expected a trace, what is known, and a tuple");
    return stepped(args[0], args[1], args[2]);
}

/* Whether an operator on the tracer x and y needs no conversion: y is a small Python number, or a tracer of the same trace, dtype
   and shape. The dtype is float32 or float64. */
static int is_match(PyObject *x, PyObject *y) {
    PyObject *host_x = NULL, *host_y = NULL;
    int is_weak = 1;
    const int kind = read_operand(SLOT(x, shadowed.primal), &host_x, &is_weak);
    if (kind <= 0) return 0;
    if (PyFloat_CheckExact(y)) return 1;
    if (PyLong_CheckExact(y)) {
        int is_large;
        const long number = PyLong_AsLongAndOverflow(y, &is_large);
        return !is_large && -(1L << 24) <= number && number <= 1L << 24;
    }
    if (!Py_IS_TYPE(y, shadowed.tracer) || SLOT(y, shadowed.trace) != SLOT(x, shadowed.trace)
        || read_operand(SLOT(y, shadowed.primal), &host_y, &is_weak) != kind)
        return 0;
    if (!PyArray_Check(host_x) || !PyArray_Check(host_y)) return PyArray_Check(host_x) == PyArray_Check(host_y);
    return PyArray_SAMESHAPE((PyArrayObject *)host_x, (PyArrayObject *)host_y);
}

/* The operators of tracers: for each its operation, and the method for operands that need a conversion. */
enum { OPERATORS = 8 };
static PyObject *operations[OPERATORS], *methods[OPERATORS];

static PyObject *operate(int i, PyObject *self, PyObject *other) {
    PyObject *trace = SLOT(self, shadowed.trace), *current = PyObject_GetAttr(running.state, running.trace), *known = NULL;
    if (!current) return NULL;
    const int is_short = current == trace && SLOT(trace, running.computes) == Py_True && is_match(self, other);
    Py_DECREF(current);
    if (is_short) {
        known = Py_XNewRef(PyDict_GetItemWithError(SLOT(trace, running.known), operations[i]));
        if (!known && !PyErr_Occurred()) known = PyObject_CallMethodObjArgs(trace, running.know, operations[i], NULL);
        if (!known) return NULL;
    }
    if (!known || SLOT(known, running.kernel) == Py_None) {
        Py_XDECREF(known);
        return PyObject_CallFunctionObjArgs(methods[i], self, other, NULL);
    }
    PyObject *args = i % 2 ? PyTuple_Pack(2, other, self) : PyTuple_Pack(2, self, other);
    PyObject *result = args ? stepped(trace, known, args) : NULL;
    Py_DECREF(known);
    Py_XDECREF(args);
    return result;
}

#define OPERATOR(i) \
    static PyObject *operator_##i(PyObject *self, PyObject *other) { return operate(i, self, other); }
OPERATOR(0)
OPERATOR(1)
OPERATOR(2)
OPERATOR(3)
OPERATOR(4)
OPERATOR(5)
OPERATOR(6)
OPERATOR(7)
static PyMethodDef OPERATOR_METHODS[OPERATORS] = {
    {"__add__", operator_0, METH_O, NULL}, {"__radd__", operator_1, METH_O, NULL},
    {"__sub__", operator_2, METH_O, NULL}, {"__rsub__", operator_3, METH_O, NULL},
    {"__mul__", operator_4, METH_O, NULL}, {"__rmul__", operator_5, METH_O, NULL},
    {"__truediv__", operator_6, METH_O, NULL}, {"__rtruediv__", operator_7, METH_O, NULL},
};

PyDoc_STRVAR(use_operators_doc, "use_operators(add, sub, mul, div)\n\n"
    "Give tracers operators that take a short way with operands that need no conversion. The arguments are the operations; the\n"
    "methods that tracers have before are for the other operands.");

static PyObject *use_operators(PyObject *module, PyObject *args) {
    if (PyTuple_GET_SIZE(args) != OPERATORS / 2 || !shadowed.tracer) return PyErr_Format(PyExc_TypeError, "expected four operations");
    for (int i = 0; i < OPERATORS; i++) {
        const char *name = OPERATOR_METHODS[i].ml_name;
        operations[i] = Py_NewRef(PyTuple_GET_ITEM(args, i / 2));
        if (!(methods[i] = PyObject_GetAttrString((PyObject *)shadowed.tracer, name))) return NULL;
        PyObject *method = PyDescr_NewMethod(shadowed.tracer, &OPERATOR_METHODS[i]);
        if (!method || PyObject_SetAttrString((PyObject *)shadowed.tracer, name, method) < 0) return NULL;
        Py_DECREF(method);
    }
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"kernel", pair_kernel, METH_O, pair_kernel_doc},
    {"apply", (PyCFunction)(void (*)(void))pair, METH_FASTCALL, pair_doc},
    {"error", (PyCFunction)(void (*)(void))pair_error, METH_FASTCALL, pair_error_doc},
    {"total", pair_total, METH_VARARGS, pair_total_doc},
    {"use_tables", pair_tables, METH_O, pair_tables_doc},
    {"step", (PyCFunction)(void (*)(void))step, METH_FASTCALL, step_doc},
    {"finish", (PyCFunction)(void (*)(void))finish, METH_FASTCALL, finish_doc},
    {"use_types", use_types, METH_VARARGS, use_types_doc},
    {"use_state", use_state, METH_VARARGS, use_state_doc},
    {"use_operators", use_operators, METH_VARARGS, use_operators_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "pairs", "Numbers of two doubles each.", -1, METHODS};

PyMODINIT_FUNC PyInit_pairs(void) {
    import_array();
    return PyModule_Create(&MODULE);
}

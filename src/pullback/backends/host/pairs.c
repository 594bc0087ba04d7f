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

INLINE Pair pair_product(double a, double b) {
    const double split = 134217729.0; /* 2**27 + 1 */
    double p = a * b, t = split * a, u = split * b;
    double ah = t - (t - a), al = a - ah, bh = u - (u - b), bl = b - bh;
    return (Pair){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

INLINE Pair pair_neg(Pair x) { return (Pair){-x.hi, -x.lo}; }
INLINE Pair pair_scaled(Pair x, double factor) { return (Pair){x.hi * factor, x.lo * factor}; }
INLINE Pair pair_if(int condition, Pair x, Pair y) { return (Pair){condition ? x.hi : y.hi, condition ? x.lo : y.lo}; }

INLINE Pair pair_add(Pair x, Pair y) {
    Pair s = pair_sum(x.hi, y.hi);
    return pair_normal(s.hi, s.lo + (x.lo + y.lo));
}

INLINE Pair pair_sub(Pair x, Pair y) { return pair_add(x, pair_neg(y)); }

INLINE Pair pair_mul(Pair x, Pair y) {
    Pair p = pair_product(x.hi, y.hi);
    return pair_normal(p.hi, p.lo + (x.hi * y.lo + x.lo * y.hi));
}

INLINE Pair pair_square(Pair x) {
    Pair p = pair_product(x.hi, x.hi);
    return pair_normal(p.hi, p.lo + 2.0 * (x.hi * x.lo));
}

INLINE Pair pair_div(Pair x, Pair y) {
    double q = x.hi / y.hi;
    Pair p = pair_product(q, y.hi);
    return pair_normal(q, ((x.hi - p.hi) - p.lo + x.lo - q * y.lo) / y.hi);
}

INLINE Pair pair_sqrt(Pair x) {
    double q = sqrt(x.hi);
    Pair p = pair_product(q, q);
    double more = ((x.hi - p.hi) - p.lo + x.lo) / (2 * q);
    return pair_normal(q, x.hi == 0 ? 0 : more);
}

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

/* Split the exponent of exp(x), for abs(x) < 700. */
INLINE Exponential pair_exp_parts(Pair x) {
    const double *step = pair_constants.exp_pieces, *c = PAIR_EXP;
    double near = fabs(x.hi) < 700 ? x.hi : 0, shifted = near * (1 / (step[0] + step[1])) + ROUNDING;
    double count = shifted - ROUNDING;
    Pair s = pair_sum(near - count * step[0], -count * step[1]);
    Pair r = pair_normal(s.hi, (x.lo + s.lo) - count * step[2]);
    Pair half = pair_scaled(pair_square(r), 0.5);
    double tail = c[0] + r.hi * (c[1] + r.hi * (c[2] + r.hi * (c[3] + r.hi * (c[4] + r.hi * c[5]))));
    Exponential found = {pair_add(r, pair_normal(half.hi, half.lo + r.hi * half.hi * tail))};
    found.count = bits_of(shifted) - bits_of(ROUNDING) + ((uint64_t)1 << 20);
    return found;
}

INLINE Pair pair_exp_of(Pair x, Exponential parts) {
    Pair power = pair_constants.exps[parts.count & (EXPS - 1)];
    Pair y = pair_add(power, pair_mul(power, parts.more));
    double scale = of_bits(((parts.count >> 6) - ((uint64_t)1 << 14) + 1023) << 52);
    int is_usual = fabs(x.hi) < 660, is_zero = x.hi < -746;
    return (Pair){is_zero ? 0 : y.hi * scale, is_zero ? 0 : is_usual ? y.lo * scale : NAN};
}

INLINE Pair pair_exp(Pair x) { return pair_exp_of(x, pair_exp_parts(x)); }

INLINE Pair pair_expm1(Pair x) {
    Exponential parts = pair_exp_parts(x);
    Pair y = pair_sub(pair_exp_of(x, parts), (Pair){1, 0});
    int is_usual = (fabs(x.hi) > 1e-290) | (x.hi == 0);
    y = pair_if((parts.count == (uint64_t)1 << 20) & (fabs(x.hi) < 1), parts.more, y);
    return (Pair){x.hi == 0 ? x.hi : y.hi, is_usual ? y.lo : NAN};
}

INLINE Pair pair_log(Pair x) {
    const double *c = PAIR_LOG, *two = pair_constants.log_pieces;
    const uint64_t bias = (uint64_t)1024 << 52;
    int is_usual = (x.hi > 1e-290) & (x.hi < 1e290);
    double size = is_usual ? x.hi : 1;
    uint64_t power = (bits_of(size) - bits_of(0.7071) + bias) >> 52; /* the exponent plus 1024 */
    double n = of_bits(power | bits_of(0x1p52)) - (0x1p52 + 1024);
    double mantissa = of_bits(bits_of(size) - (power << 52) + bias); /* from 0.7071 on, below 1.4142 */
    double shifted = mantissa * 64 + ROUNDING, centre = (shifted - ROUNDING) / 64;
    Pair u = pair_normal(mantissa - centre, x.lo * of_bits((uint64_t)(1023 + 1024 - power) << 52));
    Pair r = pair_div(u, (Pair){centre, 0}), square = pair_square(r), half = pair_scaled(square, -0.5);
    double tail = pair_mul(square, r).hi * SUM_8(r.hi, c);
    Pair y = pair_add(r, pair_normal(half.hi, half.lo + tail));
    Pair known = pair_constants.logs[(bits_of(shifted) - bits_of(ROUNDING)) & 127];
    Pair sum = pair_add(pair_add(pair_normal(n * two[0], n * two[1]), known), y);
    y = pair_if((centre == 1) & (n == 0), y, sum);
    return (Pair){y.hi, is_usual ? y.lo : NAN};
}

INLINE Pair pair_log1p(Pair x) {
    Pair s = pair_sum(1, x.hi), half = pair_scaled(pair_square(x), -0.5);
    Pair small = pair_add(x, (Pair){half.hi, half.lo + x.hi * x.hi * x.hi / 3});
    Pair y = pair_if(fabs(x.hi) < 1e-8, small, pair_log(pair_normal(s.hi, s.lo + x.lo)));
    int is_usual = (fabs(x.hi) > 1e-140) | (x.hi == 0);
    return (Pair){y.hi, is_usual ? y.lo : NAN};
}

/* The sine, or the cosine, by the angle next to x of which the table has both. */
INLINE Pair pair_circular(Pair x, int is_cosine) {
    const double *step = pair_constants.angle_pieces, *a = PAIR_SINE, *b = PAIR_COSINE;
    int is_usual = fabs(x.hi) < 1.5e6;
    double near = is_usual ? x.hi : 0, shifted = near * (1 / (step[0] + step[1])) + ROUNDING;
    double count = shifted - ROUNDING;
    Pair p = pair_sum(near - count * step[0], -count * step[1]), q = pair_sum(p.hi, -count * step[2]);
    Pair r = pair_normal(q.hi, ((x.lo + p.lo) + q.lo) - count * step[3]), rr = pair_square(r);
    uint64_t j = bits_of(shifted) & (ANGLES - 1);
    Pair s = pair_constants.sines[j], c = pair_constants.cosines[j];
    Pair sine = pair_normal(r.hi, r.lo + r.hi * rr.hi * (a[0] + rr.hi * (a[1] + rr.hi * (a[2] + rr.hi * a[3]))));
    Pair less = {-0.5 * rr.hi, -0.5 * rr.lo + rr.hi * rr.hi * (b[0] + rr.hi * (b[1] + rr.hi * b[2]))};
    Pair y = is_cosine ? pair_add(c, pair_sub(pair_mul(c, less), pair_mul(s, sine)))
                       : pair_add(s, pair_add(pair_mul(s, less), pair_mul(c, sine)));
    return (Pair){y.hi, is_usual ? y.lo : NAN};
}

INLINE Pair pair_sin(Pair x) { return pair_circular(x, 0); }
INLINE Pair pair_cos(Pair x) { return pair_circular(x, 1); }

INLINE Pair pair_tanh(Pair x) {
    Pair e = pair_expm1(pair_scaled(pair_if(fabs(x.hi) < 60, x, (Pair){copysign(60, x.hi), 0}), 2));
    return pair_div(e, pair_add(e, (Pair){2, 0}));
}

INLINE Pair pair_logistic(Pair x) {
    Pair one = {1, 0}, e = pair_exp(pair_neg(pair_abs(x)));
    return pair_div(pair_if(x.hi < 0, e, one), pair_add(one, e));
}

/* Kernels: n numbers, whose doubles are side by side. ---------------------------------------------------------------- */

typedef void PairKernel(npy_intp n, const double *const *in, double *hi, double *lo);

#define PAIR_UNARY(name)                                                                                    \
    WIDE static void kernel_##name(npy_intp n, const double *const *in, double *hi, double *lo) {           \
        const double *a = in[0], *b = in[1];                                                                \
        EACH(i, n) {                                                                                        \
            Pair y = pair_##name((Pair){a[i], b[i]});                                                       \
            hi[i] = y.hi;                                                                                   \
            lo[i] = y.lo;                                                                                   \
        }                                                                                                   \
    }
#define PAIR_BINARY(name)                                                                                   \
    WIDE static void kernel_##name(npy_intp n, const double *const *in, double *hi, double *lo) {           \
        const double *a = in[0], *b = in[1], *c = in[2], *d = in[3];                                        \
        EACH(i, n) {                                                                                        \
            Pair y = pair_##name((Pair){a[i], b[i]}, (Pair){c[i], d[i]});                                   \
            hi[i] = y.hi;                                                                                   \
            lo[i] = y.lo;                                                                                   \
        }                                                                                                   \
    }
PAIR_BINARY(add)
PAIR_BINARY(sub)
PAIR_BINARY(mul)
PAIR_BINARY(div)
PAIR_BINARY(larger)
PAIR_BINARY(smaller)
PAIR_UNARY(neg)
PAIR_UNARY(abs)
PAIR_UNARY(square)
PAIR_UNARY(sqrt)
PAIR_UNARY(exp)
PAIR_UNARY(expm1)
PAIR_UNARY(log)
PAIR_UNARY(log1p)
PAIR_UNARY(sin)
PAIR_UNARY(cos)
PAIR_UNARY(tanh)
PAIR_UNARY(logistic)

#define PAIR_NAME(name, operands) {#name, kernel_##name, operands}
static const struct {
    const char *name;
    PairKernel *kernel;
    int operands;
} PAIR_KERNELS[] = {
    PAIR_NAME(add, 2), PAIR_NAME(sub, 2), PAIR_NAME(mul, 2), PAIR_NAME(div, 2), PAIR_NAME(larger, 2), PAIR_NAME(smaller, 2),
    PAIR_NAME(neg, 1), PAIR_NAME(abs, 1), PAIR_NAME(square, 1), PAIR_NAME(sqrt, 1), PAIR_NAME(exp, 1), PAIR_NAME(expm1, 1),
    PAIR_NAME(log, 1), PAIR_NAME(log1p, 1), PAIR_NAME(sin, 1), PAIR_NAME(cos, 1), PAIR_NAME(tanh, 1), PAIR_NAME(logistic, 1),
};
enum { LAST_PLAIN = 9 }; /* those up to it take less time than by NumPy's functions for few numbers */
enum { PAIR_COUNT = sizeof PAIR_KERNELS / sizeof *PAIR_KERNELS };

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

static void pair_compute(PairKernel *kernel, const PairOperand *operands, int count, const PairShape *shape, double *hi,
                         double *lo, const double *value, Sample *sample, double *check) {
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
            kernel(n, in, hi + at, lo + at);
            if (value) look_at_d(sample, at, n, value + at, hi + at, lo + at);
            else for (npy_intp i = 0; i < n; i++) *check += lo[at + i] - lo[at + i];
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
    "Apply a function to numbers of two doubles, whose shapes broadcast.\n\n"
    "Args:\n"
    "  kernel: an index that `kernel` returned.\n"
    "  value: the result of the function on doubles, of which some are compared with those of two doubles; or None.\n"
    "  zeros: whether a value of zero may be right, and need no closer look.\n"
    "  unit: the unit roundoff of the values.\n"
    "  *doubles: for each operand its first and its second doubles: arrays, or numbers.\n\n"
    "Returns:\n"
    "  The first and the second doubles of the result; and the relative error that few of the values exceed, if there are\n"
    "  values. None if some number is huge, tiny or not finite, or an array has another dtype.");

/* Compute a function, and its value's error if there is one. Return 1; 0 where this needs the general way, -1 for an error. */
static int compute(long code, PairOperand *operands, const PairOperand *value, int zeros, double unit, PyObject **hi, PyObject **lo,
                   double *error) {
    PairKernel *kernel = PAIR_KERNELS[code].kernel;
    const int count = 2 * PAIR_KERNELS[code].operands;
    PairShape shape;
    int ndim = 0;
    *error = 0;
    for (int k = 0; k < count; k++)
        if (operands[k].array && PyArray_NDIM(operands[k].array) > ndim) ndim = PyArray_NDIM(operands[k].array);
    if (ndim == 0) {
        const double *in[4];
        double high, low;
        for (int k = 0; k < count; k++) in[k] = &operands[k].number;
        kernel(1, in, &high, &low);
        if (low - low != 0) return 0;
        if (value) {
            if (value->array) return 0;
            const double difference = (value->number - high) - low;
            *error = difference == 0 ? 0 : fabs(difference / high);
            if (!(*error < 1) || (value->number == 0 && !zeros)) return 0;
        }
        *hi = new_double(high);
        *lo = new_double(low);
        return *hi && *lo ? 1 : -1;
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
    *lo = PyArray_SimpleNew(ndim, dims, NPY_DOUBLE);
    if (!*hi || !*lo || (value && !sample)) {
        free(sample);
        if (!PyErr_Occurred()) PyErr_NoMemory();
        return -1;
    }
    double check = 0, *high = PyArray_DATA((PyArrayObject *)*hi), *low = PyArray_DATA((PyArrayObject *)*lo);
    Py_BEGIN_ALLOW_THREADS
    if (value) sample_begin(sample, shape.size, zeros);
    pair_compute(kernel, operands, count, &shape, high, low, value ? PyArray_DATA((PyArrayObject *)value->array) : NULL, sample, &check);
    if (value) *error = check = sample_end(sample, unit);
    Py_END_ALLOW_THREADS
    free(sample);
    return check - check == 0;
}

static PyObject *pair(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    const long code = given > 4 ? PyLong_AsLong(args[0]) : -1;
    if (code < 0 || code >= PAIR_COUNT || given != 4 + 2 * PAIR_KERNELS[code].operands)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "expected a function and its operands");
    const double unit = PyFloat_AsDouble(args[3]);
    if (unit == -1 && PyErr_Occurred()) return NULL;
    PairOperand operands[4], value;
    for (int k = 0; k < (int)given - 4; k++)
        if (!read_pair_operand(args[4 + k], &operands[k])) Py_RETURN_NONE;
    const int has_value = args[1] != Py_None;
    if (has_value && !read_pair_operand(args[1], &value)) Py_RETURN_NONE;
    PyObject *hi = NULL, *lo = NULL;
    double error;
    const int found = compute(code, operands, has_value ? &value : NULL, args[2] == Py_True, unit, &hi, &lo, &error);
    if (found == 1) return has_value ? Py_BuildValue("(NNd)", hi, lo, error) : Py_BuildValue("(NN)", hi, lo);
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
    Py_RETURN_NONE;
}

/* Results with shadows. -------------------------------------------------------------------------------------------------- */

/* What `use_types` is passed: the types, and where their instances have their attributes. */
static struct {
    PyTypeObject *tracer, *made, *accuracy, *two, *array;
    PyObject *nothing;
    Py_ssize_t host_value; /* of an array */
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
    if ((shadowed.host_value = slot_of(array, "_host_value")) < 0) return NULL;
    shadowed.two = (PyTypeObject *)Py_NewRef(two);
    shadowed.array = (PyTypeObject *)Py_NewRef(array);
    shadowed.tracer = (PyTypeObject *)Py_NewRef(tracer);
    shadowed.made = (PyTypeObject *)Py_NewRef(made);
    shadowed.accuracy = (PyTypeObject *)Py_NewRef(accuracy);
    shadowed.nothing = Py_NewRef(nothing);
    Py_RETURN_NONE;
}

enum { ZEROS = 1, KEEPS = 2, SUMS = 4, ADVISED = 8 }; /* what is known of an operation; see `step_doc` */

/* What is known of a result: its expression's operands, how deep it is, whether it is exact, and its losses. */
typedef struct {
    PyObject *tracers, *values, *operands, *losses; /* the losses are borrowed */
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
    r->losses = shadowed.nothing;
    return lost < least;
}

/* Return the tracer of a result with its shadow; NULL without an error where this needs the general way. */
static PyObject *traced(Result *r, PyObject *trace, PyObject *primitive, PyObject *params, PyObject *out, PyObject *wide,
                        PyObject *location, PyObject *phase, double few) {
    PyObject *operands = r->operands = PyList_New(PyList_GET_SIZE(r->tracers));
    if (!operands) return NULL;
    if (describe(r) < 1 || !accounts(r, few)) {
        Py_DECREF(operands);
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
        return NULL;
    }
    PyTuple_SET_ITEM(known, 0, first);
    PyTuple_SET_ITEM(known, 1, second);
    PyTuple_SET_ITEM(known, 2, Py_NewRef(r->losses));
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

/* Shadows in doubles of so few elements are computed as two doubles, whose second are dropped: by plain functions, and by
   elementary ones. */
enum { PLAINLY = 512, FEWER = 128 };

/* Read the shadow of an operand, an array of at most `most` elements if it is in doubles, as two; 0 where this needs the general way. */
static int read_shadow(PyObject *tracer, PyObject *operand, int is_two, int is_single, npy_intp most, PairOperand *found) {
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
    return read_pair_operand(wide, found) && (!found->array || PyArray_SIZE((PyArrayObject *)found->array) <= most);
}

PyDoc_STRVAR(step_doc, "step(trace, evaluate, primitive, kernel, flags, two, args, params, location, phase, deepest, few)\n\n"
    "Evaluate an operation, and its shadow.\n\n"
    "Args:\n"
    "  trace: that of the tracers.\n"
    "  evaluate: `evaluate(primitive, values, params)` returns the result.\n"
    "  primitive, params: the operation.\n"
    "  kernel: the index of its function.\n"
    "  flags: a sum: 1, a result of zero may be right; 2, results are elements of operands; 4, it is a sum; 8, there is\n"
    "    advice for it.\n"
    "  two: whether shadows are two doubles.\n"
    "  args: a tuple of the operands.\n"
    "  location, phase, deepest, few: those of `finish`.\n\n"
    "Returns:\n"
    "  A tracer; or the result, where its shadow needs the general way.");

static PyObject *step(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    if (given != 12 || !PyTuple_Check(args[6]) || !shadowed.tracer) return PyErr_Format(PyExc_TypeError, "expected 12 arguments");
    const Py_ssize_t count = PyTuple_GET_SIZE(args[6]);
    const long code = PyLong_AsLong(args[3]), flags = PyLong_AsLong(args[4]), deepest = PyLong_AsLong(args[10]);
    const double few = PyFloat_AsDouble(args[11]);
    if (PyErr_Occurred()) return NULL;
    if (code < 0 || code >= PAIR_COUNT || PAIR_KERNELS[code].operands != count)
        return PyErr_Format(PyExc_ValueError, "expected the operands of a function");
    PyObject *tracers = PyList_New(count), *values = PyList_New(count), *out = NULL, *tracer = NULL, *value = NULL;
    PyObject *hi = NULL, *lo = NULL, *wide = NULL, *tuple = NULL;
    for (Py_ssize_t i = 0; tracers && values && i < count; i++) {
        PyObject *x = PyTuple_GET_ITEM(args[6], i);
        const int is_traced = Py_IS_TYPE(x, shadowed.tracer);
        PyList_SET_ITEM(tracers, i, Py_NewRef(is_traced ? x : Py_None));
        PyList_SET_ITEM(values, i, Py_NewRef(is_traced ? SLOT(x, shadowed.primal) : x));
    }
    if (!tracers || !values || !(tuple = PyList_AsTuple(values))) goto end;
    out = PyObject_CallFunctionObjArgs(args[1], args[2], tuple, args[7], NULL);
    if (!out || !Py_IS_TYPE(out, shadowed.array) || !(value = host_value_of(out))) goto end;
    PairOperand operands[4], result = {0};
    const int two = args[5] == Py_True;
    int is_single = PyArray_IsScalar(value, Float);
    if (PyArray_Check(value) && PyArray_TYPE((PyArrayObject *)value) == NPY_FLOAT) {
        PyObject *wider = PyArray_SIZE((PyArrayObject *)value) > PLAINLY ? NULL : PyArray_FROM_OTF(value, NPY_DOUBLE, NPY_ARRAY_IN_ARRAY);
        if (!wider) goto end;
        Py_SETREF(value, wider);
        is_single = 1;
        if (!read_pair_operand(value, &result)) goto end;
    } else if (is_single) result.number = PyArrayScalar_VAL(value, Float);
    else if (!read_pair_operand(value, &result)) goto end;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!read_shadow(PyList_GET_ITEM(tracers, i), PyTuple_GET_ITEM(args[6], i), two, is_single, code <= LAST_PLAIN ? PLAINLY : FEWER, operands + 2 * i)) goto end;
    Result r = {.tracers = tracers, .values = values, .least = is_single ? 0x1p-24 : 0x1p-53, .deepest = deepest,
                .is_exact = (flags & KEEPS) != 0, .flags = (int)flags};
    if (compute(code, operands, &result, flags & ZEROS, r.least, &hi, &lo, &r.error) != 1) goto end;
    wide = two ? shadowed.two->tp_alloc(shadowed.two, 2) : Py_NewRef(hi);
    if (!wide) goto end;
    if (two) {
        PyTuple_SET_ITEM(wide, 0, Py_NewRef(hi));
        PyTuple_SET_ITEM(wide, 1, Py_NewRef(lo));
    }
    tracer = traced(&r, args[0], args[2], args[7], out, wide, args[8], args[9], few);
end:
    Py_XDECREF(tracers);
    Py_XDECREF(values);
    Py_XDECREF(tuple);
    Py_XDECREF(value);
    Py_XDECREF(hi);
    Py_XDECREF(lo);
    Py_XDECREF(wide);
    if (PyErr_Occurred()) {
        Py_CLEAR(out);
        Py_CLEAR(tracer);
    }
    if (!tracer) return out;
    Py_DECREF(out);
    return tracer;
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
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "pairs", "Numbers of two doubles each.", -1, METHODS};

PyMODINIT_FUNC PyInit_pairs(void) {
    import_array();
    return PyModule_Create(&MODULE);
}

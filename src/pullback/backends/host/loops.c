/* Elementwise programs over large arrays, by blocks that stay in the cache, on all cores, without Python's lock.

   A program is a list of steps. A step calls a loop on a block: one of NumPy's own inner loops, so that each element
   has the bits that NumPy computes, or one of those below, for operations that NumPy lacks or computes slowly. All have
   the signature of NumPy's loops: pointers to the operands and the result, the number of elements, the strides.

   Each thread has a range of the blocks, and then takes those of others that are late, so that a busy core costs nothing.
   Which thread computes a block changes no result. */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <structmember.h>
#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "numpy/arrayobject.h"
#include "numpy/ufuncobject.h"

#include "portable.h"

typedef void Loop(char **arguments, npy_intp const *count, npy_intp const *strides, void *data);

enum {
    MOST_OPERANDS = 4,
    ALIGNMENT = 64, /* of buffers, in bytes */
    MOST_RANGES = 64, /* into which the blocks of a job are divided */
    TAKEN = 1 << 15, /* bytes of elements that a thread takes at once, in blocks */
    SPINS = 4000,   /* how often a thread looks for the next job before it lets others have its core: for 70 us on an AMD EPYC */
    YIELDS = 256,   /* how often it looks then before it reads the clock */
};

#define YIELDING 5e-4 /* for how many seconds it looks then, before it sleeps */

typedef struct {
    void *loop; /* a Loop, or a Reduction if the result has pieces */
    void *data;
    int arity;
    int operands[MOST_OPERANDS + 1]; /* positions of values; the last is the result's */
    int is_flat;                     /* whether several rows are one run of elements in all of them */
} Step;

/* Elements that a step reads or writes: of an array, or of a buffer that each thread has. */
typedef struct {
    char *data;      /* NULL if they are in a buffer */
    npy_intp strides[3]; /* bytes from a group of rows to the next, from a row to the next, and from an element */
    npy_intp offset; /* of the buffer, in a thread's memory */
    npy_intp piece;  /* of how many columns, or rows of a group, an element is the reduction; 0 if it is of one */
    int axis;        /* of the pieces: 1 or 2 */
} Value;

/* Blocks that one thread takes, and others if it is late. */
typedef struct {
    Shared next;
    npy_intp end;
    char apart[64 - sizeof(Shared) - sizeof(npy_intp)]; /* no two are in the same line of a cache */
} Range;

typedef struct Job {
    void (*compute)(const struct Job *, npy_intp block, char *memory);
    int taken; /* how many blocks a thread takes at once: memory is read in long runs */
    npy_intp blocks;
    Range *ranges; /* the blocks, divided: the same parts of arrays are mostly in the same core's cache */
    int range_count;
    npy_intp buffers; /* bytes that each thread needs */
    char *memory;
    long most_helpers;
    Shared helpers;
    const void *product; /* if matrices are multiplied, nothing of the following */
    Step *steps;
    Value *values;
    int step_count, value_count, ndim;
    npy_intp groups, group, rows, columns; /* of the arrays: rows are in groups of equal size */
    npy_intp block_rows, block_columns;    /* of a block */
    npy_intp rows_at_once;                 /* of a block, for which a thread has buffers: all, or parts of pieces */
    npy_intp stretch;                      /* the rows that are divided: all, or a group, if its columns are reduced */
    npy_intp blocks_of_a_row, blocks_of_a_stretch;
} Job;

/* A loop whose steps are independent: where operand and result share memory, they share each element. */
#define EACH(i, n) INDEPENDENT for (npy_intp i = 0; i < (n); i++)

/* The loops that NumPy lacks. -------------------------------------------------------------------------------------- */

/* Selection: operands are a mask of one byte, the choice where it is true, and the other choice. */
#define SELECT(name, type)                                                                                  \
    WIDE static void name(char **a, npy_intp const *count, npy_intp const *strides, void *data) {           \
        npy_intp n = *count;                                                                                \
        const uint8_t *which = (const uint8_t *)a[0];                                              \
        const type *x = (const type *)a[1], *y = (const type *)a[2];                                        \
        type *out = (type *)a[3];                                                                           \
        if (strides[0] == 1 && strides[1] == sizeof(type) && strides[2] == sizeof(type)) {                  \
            EACH(i, n) out[i] = which[i] ? x[i] : y[i];                                                     \
        } else if (strides[0] == 1 && strides[1] == 0 && strides[2] == sizeof(type)) {                      \
            const type first = *x;                                                                          \
            EACH(i, n) out[i] = which[i] ? first : y[i];                                                    \
        } else if (strides[0] == 1 && strides[1] == sizeof(type) && strides[2] == 0) {                      \
            const type second = *y;                                                                         \
            EACH(i, n) out[i] = which[i] ? x[i] : second;                                                   \
        } else {                                                                                            \
            EACH(i, n)                                                                                      \
                out[i] = *(const uint8_t *)(a[0] + i * strides[0])                                          \
                             ? *(const type *)(a[1] + i * strides[1]) : *(const type *)(a[2] + i * strides[2]); \
        }                                                                                                   \
    }
SELECT(select_1, uint8_t)
SELECT(select_2, uint16_t)
SELECT(select_4, uint32_t)
SELECT(select_8, uint64_t)

/* Binary loops for operands that are arrays or numbers. */
#define BINARY(name, type, expression)                                                                      \
    WIDE static void name(char **a, npy_intp const *count, npy_intp const *strides, void *data) {           \
        npy_intp n = *count;                                                                                \
        const type *p = (const type *)a[0], *q = (const type *)a[1];                                        \
        type *out = (type *)a[2];                                                                           \
        if (strides[0] == sizeof(type) && strides[1] == sizeof(type)) {                                     \
            EACH(i, n) { const type x = p[i], y = q[i]; out[i] = expression; }                              \
        } else if (strides[0] == sizeof(type) && strides[1] == 0) {                                         \
            const type y = *q;                                                                              \
            EACH(i, n) { const type x = p[i]; out[i] = expression; }                                        \
        } else {                                                                                            \
            EACH(i, n) {                                                                                    \
                const type x = *(const type *)(a[0] + i * strides[0]), y = *(const type *)(a[1] + i * strides[1]); \
                out[i] = expression;                                                                        \
            }                                                                                               \
        }                                                                                                   \
    }
/* The larger, or smaller, of two numbers by masks, without branches. NaN wins. Equal numbers have the same bits, or are
   zeros: the larger zero is that without a sign, and the smaller that with it. If the second is one number, a single
   comparison decides: its sign tells which of two equal numbers, which may be zeros, is the result (`keeps`: the first). */
typedef uint32_t MAY_ALIAS bits_f;
typedef uint64_t MAY_ALIAS bits_d;
#define EXTREME_OF(x, y, a, b, bits, wins, on_equal)                                                        \
    const bits first = -(bits)((x wins y) | (x != x)), same = -(bits)(x == y);                              \
    out[i] = (a & first) | (on_equal & ~first);
#define EXTREME(name, type, bits, wins, on_equal, keeps)                                                    \
    WIDE static void name(char **args, npy_intp const *count, npy_intp const *strides, void *data) {        \
        npy_intp n = *count;                                                                                \
        const type *p = (const type *)args[0], *q = (const type *)args[1];                                  \
        bits *out = (bits *)args[2];                                                                        \
        if (strides[0] == sizeof(type) && strides[1] == sizeof(type)) {                                     \
            EACH(i, n) {                                                                                    \
                const type x = p[i], y = q[i];                                                              \
                const bits a = ((const bits *)p)[i], b = ((const bits *)q)[i];                              \
                EXTREME_OF(x, y, a, b, bits, wins, on_equal)                                                \
            }                                                                                               \
        } else if (strides[0] == sizeof(type) && strides[1] == 0) {                                         \
            const type y = *q;                                                                              \
            const bits b = *(const bits *)q;                                                                \
            if (y != y) {                                                                                   \
                EACH(i, n) out[i] = p[i] != p[i] ? ((const bits *)p)[i] : b;                                \
            } else if (keeps(y)) {                                                                          \
                EACH(i, n) out[i] = !(y wins p[i]) ? ((const bits *)p)[i] : b;                              \
            } else {                                                                                        \
                EACH(i, n) out[i] = !(y wins##= p[i]) ? ((const bits *)p)[i] : b;                           \
            }                                                                                               \
        } else {                                                                                            \
            EACH(i, n) {                                                                                    \
                const char *s = args[0] + i * strides[0], *t = args[1] + i * strides[1];                    \
                const type x = *(const type *)s, y = *(const type *)t;                                      \
                const bits a = *(const bits *)s, b = *(const bits *)t;                                      \
                EXTREME_OF(x, y, a, b, bits, wins, on_equal)                                                \
            }                                                                                               \
        }                                                                                                   \
    }
EXTREME(maximum_f, float, bits_f, >, (b & (a | ~same)), signbit)
EXTREME(maximum_d, double, bits_d, >, (b & (a | ~same)), signbit)
EXTREME(minimum_f, float, bits_f, <, (b | (a & same)), !signbit)
EXTREME(minimum_d, double, bits_d, <, (b | (a & same)), !signbit)
/* The choice of a or b by a comparison of x with one number, without a mask in between. */
#define CHOICE(name, type, bits, compared)                                                                  \
    WIDE static void name(char **args, npy_intp const *count, npy_intp const *strides, void *data) {        \
        const npy_intp n = *count, item = sizeof(type);                                                     \
        const type *x = (const type *)args[0], y = *(const type *)args[1];                                  \
        const bits *a = (const bits *)args[2], *b = (const bits *)args[3];                                  \
        const int is_even = strides[0] == item && strides[1] == 0;                                          \
        bits *out = (bits *)args[4];                                                                        \
        if (is_even && strides[2] == item && strides[3] == item) {                                          \
            EACH(i, n) out[i] = x[i] compared y ? a[i] : b[i];                                              \
        } else if (is_even && strides[2] == item && strides[3] == 0) {                                      \
            const bits other = *b;                                                                          \
            EACH(i, n) out[i] = x[i] compared y ? a[i] : other;                                             \
        } else if (is_even && strides[2] == 0 && strides[3] == item) {                                      \
            const bits one = *a;                                                                            \
            EACH(i, n) out[i] = x[i] compared y ? one : b[i];                                               \
        } else {                                                                                            \
            EACH(i, n) {                                                                                    \
                const type p = *(const type *)(args[0] + i * strides[0]), q = *(const type *)(args[1] + i * strides[1]); \
                out[i] = *(const bits *)(p compared q ? args[2] + i * strides[2] : args[3] + i * strides[3]); \
            }                                                                                               \
        }                                                                                                   \
    }
#define CHOICES(name, compared)                                                                             \
    CHOICE(name##_f, float, bits_f, compared)                                                               \
    CHOICE(name##_d, double, bits_d, compared)
CHOICES(if_less, <)
CHOICES(if_less_equal, <=)
CHOICES(if_greater, >)
CHOICES(if_greater_equal, >=)
CHOICES(if_equal, ==)
CHOICES(if_not_equal, !=)

/* The derivative of the larger, or smaller, of two numbers by the first: 1, 0, or 1/2 where they are equal. */
BINARY(max_share_f, float, (float)(1 + ((x >= y) | (x != x)) - ((y >= x) | (y != y))) * 0.5f)
BINARY(max_share_d, double, (double)(1 + ((x >= y) | (x != x)) - ((y >= x) | (y != y))) * 0.5)
BINARY(min_share_f, float, (float)(1 + ((x <= y) | (x != x)) - ((y <= x) | (y != y))) * 0.5f)
BINARY(min_share_d, double, (double)(1 + ((x <= y) | (x != x)) - ((y <= x) | (y != y))) * 0.5)

/* Quotients and remainders of integers, cut off towards zero. By zero they are all ones and the dividend; the least
   integer by -1 wraps. Integers of at most 16 and 32 bits are divided as floats of 32 and 64, which processors do in
   vectors: the quotient is at least 1 / |y| from the next integer, and its rounding error is less. */
#define DIVISION(suffix, type, wide, narrowed, overflows)                                                   \
    BINARY(div_##suffix, type, y == 0 ? (type)-1 : (type)(narrowed)((wide)x / (wide)((y == 0) | (overflows) ? 1 : y))) \
    BINARY(rem_##suffix, type, y == 0 ? x : (type)(x - (type)(narrowed)((wide)x / (wide)((y == 0) | (overflows) ? 1 : y)) \
                                                         * ((overflows) ? 1 : y)))
DIVISION(i1, int8_t, float, int32_t, (x == INT8_MIN) & (y == -1))
DIVISION(i2, int16_t, float, int32_t, (x == INT16_MIN) & (y == -1))
DIVISION(i4, int32_t, double, int32_t, (x == INT32_MIN) & (y == -1))
DIVISION(i8, int64_t, int64_t, int64_t, (x == INT64_MIN) & (y == -1))
DIVISION(u1, uint8_t, float, int32_t, 0)
DIVISION(u2, uint16_t, float, int32_t, 0)
DIVISION(u4, uint32_t, double, uint32_t, 0)
DIVISION(u8, uint64_t, uint64_t, uint64_t, 0)

/* Unary loops; the operand has its elements side by side, or is one number. */
#define UNARY(name, from, to, expression)                                                                   \
    WIDE static void name(char **a, npy_intp const *count, npy_intp const *strides, void *data) {           \
        npy_intp n = *count;                                                                                \
        const from *p = (const from *)a[0];                                                                 \
        to *out = (to *)a[1];                                                                               \
        if (strides[0] == sizeof(from)) {                                                                   \
            EACH(i, n) { const from x = p[i]; out[i] = expression; }                                        \
        } else if (strides[0] == 0) {                                                                       \
            const from x = *p;                                                                              \
            const to same = expression;                                                                     \
            EACH(i, n) out[i] = same;                                                                       \
        } else {                                                                                            \
            EACH(i, n) {                                                                                    \
                const from x = *(const from *)(a[0] + i * strides[0]);                                      \
                out[i] = expression;                                                                        \
            }                                                                                               \
        }                                                                                                   \
    }
UNARY(sign_f, float, float, x > 0 ? 1.0f : x < 0 ? -1.0f : x)
UNARY(sign_d, double, double, x > 0 ? 1.0 : x < 0 ? -1.0 : x)

UNARY(copy_1, uint8_t, uint8_t, x)
UNARY(copy_2, uint16_t, uint16_t, x)
UNARY(copy_4, uint32_t, uint32_t, x)
UNARY(copy_8, uint64_t, uint64_t, x)

#define CASTS_TO(name, to)                                                                                  \
    UNARY(name##_from_b, uint8_t, to, (to)(x != 0))                                                         \
    UNARY(name##_from_f, float, to, (to)x)                                                                  \
    UNARY(name##_from_d, double, to, (to)x)                                                                 \
    UNARY(name##_from_i1, int8_t, to, (to)x)                                                                \
    UNARY(name##_from_i2, int16_t, to, (to)x)                                                               \
    UNARY(name##_from_i4, int32_t, to, (to)x)                                                               \
    UNARY(name##_from_i8, int64_t, to, (to)x)                                                               \
    UNARY(name##_from_u1, uint8_t, to, (to)x)                                                               \
    UNARY(name##_from_u2, uint16_t, to, (to)x)                                                              \
    UNARY(name##_from_u4, uint32_t, to, (to)x)                                                              \
    UNARY(name##_from_u8, uint64_t, to, (to)x)
CASTS_TO(f, float)
CASTS_TO(d, double)

/* bfloat16 is the upper half of a float, rounded to the nearest, halves to even. NaN keeps only its sign. */
INLINE uint16_t bfloat16_of(uint32_t bits) {
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = (bits >> 16 & 0x8000) | 0x7fc0;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}
UNARY(bfloat16_from_f, bits_f, uint16_t, bfloat16_of(x))
UNARY(f_from_bfloat16, uint16_t, bits_f, (uint32_t)x << 16)

/* Products of complex numbers. Both components are rounded as is written, whatever the processor has. GNU's compiler makes
   one instruction, which rounds less, of a difference and a sum of products side by side: here the sign of a product is
   changed as bits, and both components are sums. */
#ifdef HAS_VECTORS
#define IN_VECTORS(vector, bits, top, shuffled)                                                             \
    bits sign = {0};                                                                                        \
    for (size_t j = 0; j < sizeof sign / sizeof sign[0]; j += 2) sign[j] = top;                             \
    for (; first + (npy_intp)(sizeof sign / sizeof sign[0] / 2) <= n; first += sizeof sign / sizeof sign[0] / 2) { \
        vector x, y;                                                                                        \
        memcpy(&x, p + 2 * first, sizeof x);                                                                \
        memcpy(&y, q + 2 * first, sizeof y);                                                                \
        const vector by_real = shuffled(x, 0, 0) * y, by_imaginary = shuffled(x, 1, 1) * shuffled(y, 1, 0); \
        const vector sums = by_real + (vector)((bits)by_imaginary ^ sign);                                  \
        memcpy(out + 2 * first, &sums, sizeof sums);                                                        \
    }
#else
#define IN_VECTORS(vector, bits, top, shuffled)
#endif
#define COMPLEX_PRODUCT(name, type, vector, bits, top, shuffled)                                            \
    WIDE static void name(char **args, npy_intp const *count, npy_intp const *strides, void *data) {        \
        const type *p = (const type *)args[0], *q = (const type *)args[1];                                  \
        type *out = (type *)args[2];                                                                        \
        const npy_intp n = *count;                                                                          \
        npy_intp first = 0;                                                                                 \
        IN_VECTORS(vector, bits, top, shuffled)                                                             \
        for (; first < n; first++) {                                                                        \
            const type a = p[2 * first], b = p[2 * first + 1], c = q[2 * first], d = q[2 * first + 1];      \
            const volatile type real = a * c - b * d;                                                       \
            out[2 * first + 1] = a * d + b * c;                                                             \
            out[2 * first] = real;                                                                          \
        }                                                                                                   \
    }
COMPLEX_PRODUCT(product_cf, float, Singles, BitsOfSingles, 0x80000000u, SHUFFLED_SINGLES)
COMPLEX_PRODUCT(product_cd, double, Doubles, BitsOfDoubles, 0x8000000000000000u, SHUFFLED_DOUBLES)

#include "reduce.h"

/* Running sums of a row, those of single precision in double precision. A block has whole rows. */
#define RUNNING_SUM(name, type, wide)                                                                       \
    static void name(char **a, npy_intp const *count, npy_intp const *strides, void *data) {                \
        wide sum = -0.0; /* the sum of no numbers, which leaves the sign of a zero */                       \
        for (npy_intp i = 0; i < *count; i++) {                                                             \
            sum += *(const type *)(a[0] + i * strides[0]);                                                  \
            *(type *)(a[1] + i * strides[1]) = (type)sum;                                                   \
        }                                                                                                   \
    }
RUNNING_SUM(running_sum_f, float, double)
RUNNING_SUM(running_sum_d, double, double)

/* Positions in a sorted array, the data of the loop, for an array of values side by side, or one value. Several are
   searched for at once, without branches, so that the processor waits for memory only once for all of them. NaN comes
   after all other numbers. */
typedef struct {
    const void *elements;
    npy_intp size; /* positive, and below 2**31 */
} Sorted;

enum { SOUGHT = 16 };

#define SEARCH(name, type, is_before)                                                                       \
    WIDE static void name(char **a, npy_intp const *count, npy_intp const *strides, void *data) {           \
        const Sorted *sorted = data;                                                                        \
        const type *elements = sorted->elements, *p = (const type *)a[0];                                   \
        int32_t *out = (int32_t *)a[1];                                                                     \
        for (npy_intp first = 0; first < *count; first += SOUGHT) {                                         \
            const int n = *count - first < SOUGHT ? (int)(*count - first) : SOUGHT;                         \
            type values[SOUGHT];                                                                            \
            int32_t start[SOUGHT];                                                                          \
            for (int l = 0; l < SOUGHT; l++) {                                                              \
                start[l] = 0;                                                                               \
                values[l] = p[strides[0] ? first + (l < n ? l : 0) : 0];                                    \
            }                                                                                               \
            for (int32_t rest = (int32_t)sorted->size; rest > 0;) {                                         \
                const int32_t half = rest - rest / 2;                                                       \
                for (int l = 0; l < SOUGHT; l++) {                                                          \
                    const type x = elements[start[l] + half - 1], v = values[l];                            \
                    start[l] += half & -(int32_t)(is_before);                                                    \
                }                                                                                           \
                rest -= half;                                                                               \
            }                                                                                               \
            for (int l = 0; l < n; l++) out[first + l] = start[l];                                          \
        }                                                                                                   \
    }
#define SEARCHES(name, type)                                                                                \
    SEARCH(left_##name, type, (x < v) | ((v != v) & (x == x)))                                              \
    SEARCH(right_##name, type, !((v < x) | ((x != x) & (v == v))))
SEARCHES(f, float)
SEARCHES(d, double)
SEARCHES(i4, int32_t)
SEARCHES(i8, int64_t)

#include "fused.h"
#include "special.h"
#include "elementary.h"
#include "rows.h"
#include "planes.h"

typedef struct {
    const char *name;
    void *loop; /* a Loop or a Reduction */
    void *data;
} Named;

static char reduces, stacks;
#define REDUCES ((void *)&reduces) /* the data of a reduction of rows */
#define STACKS ((void *)&stacks)   /* that of a reduction of columns */
static char multiplies;
#define MULTIPLIES ((void *)&multiplies) /* that of a reduction of the product of two operands, of rows */
static char runs;
#define RUNS ((void *)&runs) /* the data of a loop whose elements depend on those before them in a row */

#define CAST_NAMES(name, to)                                                                                \
    {"cast " to "?", name##_from_b}, {"cast " to "f", name##_from_f}, {"cast " to "d", name##_from_d},       \
        {"cast " to "i1", name##_from_i1}, {"cast " to "i2", name##_from_i2}, {"cast " to "i4", name##_from_i4}, \
        {"cast " to "i8", name##_from_i8}, {"cast " to "u1", name##_from_u1}, {"cast " to "u2", name##_from_u2}, \
        {"cast " to "u4", name##_from_u4}, {"cast " to "u8", name##_from_u8}
#define REDUCTION_NAMES(name)                                                                               \
    {#name " f", name##_f, REDUCES}, {#name " d", name##_d, REDUCES},                                       \
        {"stacked " #name " f", stacked_##name##_f, STACKS}, {"stacked " #name " d", stacked_##name##_d, STACKS}
#define CHOICE_NAMES(name) {#name " f", name##_f}, {#name " d", name##_d}
#define SCALED_NAMES(name)                                                                                  \
    {#name "_scaled f", name##_scaled_f}, {#name "_scaled d", name##_scaled_d},                             \
        {#name "_or_scaled f", name##_or_scaled_f}, {#name "_or_scaled d", name##_or_scaled_d}
#define DIVISION_NAMES(suffix) {"div " #suffix, div_##suffix}, {"rem " #suffix, rem_##suffix}
static const Named OWN_LOOPS[] = {
    {"select 1", select_1}, {"select 2", select_2}, {"select 4", select_4}, {"select 8", select_8},
    CHOICE_NAMES(if_less), CHOICE_NAMES(if_less_equal), CHOICE_NAMES(if_greater), CHOICE_NAMES(if_greater_equal),
    CHOICE_NAMES(if_equal), CHOICE_NAMES(if_not_equal),
    SCALED_NAMES(if_less), SCALED_NAMES(if_less_equal), SCALED_NAMES(if_greater), SCALED_NAMES(if_greater_equal),
    SCALED_NAMES(if_equal), SCALED_NAMES(if_not_equal), {"clamp f", clamp_f}, {"clamp d", clamp_d},
    {"product_of_three f", product_of_three_f}, {"product_of_three d", product_of_three_d},
    {"sign_or_number f", sign_or_number_f}, {"sign_or_number d", sign_or_number_d},
    {"maximum f", maximum_f}, {"maximum d", maximum_d}, {"minimum f", minimum_f}, {"minimum d", minimum_d},
    {"max_share f", max_share_f}, {"max_share d", max_share_d}, {"min_share f", min_share_f},
    {"min_share d", min_share_d}, {"sign f", sign_f}, {"sign d", sign_d},
    {"copy 1", copy_1}, {"copy 2", copy_2}, {"copy 4", copy_4}, {"copy 8", copy_8},
    REDUCTION_NAMES(sum), REDUCTION_NAMES(product), REDUCTION_NAMES(largest), REDUCTION_NAMES(least),
    {"dot f", dot_f, MULTIPLIES}, {"dot d", dot_d, MULTIPLIES},
    {"running sum f", running_sum_f, RUNS}, {"running sum d", running_sum_d, RUNS},
    {"softmax f", softmax_f, RUNS}, {"softmax d", softmax_d, RUNS},
    {"log_softmax f", log_softmax_f, RUNS}, {"log_softmax d", log_softmax_d, RUNS},
    {"softmax_slope f", softmax_slope_f, RUNS}, {"softmax_slope d", softmax_slope_d, RUNS},
    {"log_softmax_slope f", log_softmax_slope_f, RUNS}, {"log_softmax_slope d", log_softmax_slope_d, RUNS},
    {"log_softmax_pull f", log_softmax_pull_f, RUNS}, {"log_softmax_pull d", log_softmax_pull_d, RUNS},
    {"logsumexp f", logsumexp_f, RUNS}, {"logsumexp d", logsumexp_d, RUNS},
    {"logsumexp_slope f", logsumexp_slope_f, RUNS}, {"logsumexp_slope d", logsumexp_slope_d, RUNS},
    {"norm f", norm_f, RUNS}, {"norm d", norm_d, RUNS}, {"others f", others_f, RUNS}, {"others d", others_d, RUNS},
    {"left f", left_f}, {"left d", left_d}, {"left i4", left_i4}, {"left i8", left_i8},
    {"right f", right_f}, {"right d", right_d}, {"right i4", right_i4}, {"right i8", right_i8},
    CAST_NAMES(f, "f"), CAST_NAMES(d, "d"), {"cast bfloat16 f", bfloat16_from_f}, {"cast f bfloat16", f_from_bfloat16},
    PLANE_NAMES(f), PLANE_NAMES(d),
    DIVISION_NAMES(i1), DIVISION_NAMES(i2), DIVISION_NAMES(i4), DIVISION_NAMES(i8),
    DIVISION_NAMES(u1), DIVISION_NAMES(u2), DIVISION_NAMES(u4), DIVISION_NAMES(u8),
    {"erf f", erf_f}, {"erfc f", erfc_f}, {"erfcx f", erfcx_f}, {"ndtr f", ndtr_f}, {"gelu f", gelu_f}, {"log_ndtr f", log_ndtr_f},
    {"gaussian f", gaussian_f}, {"half_gaussian f", half_gaussian_f}, {"logistic f", logistic_f},
    {"logistic_slope f", logistic_slope_f}, {"lgamma f", lgamma_f}, {"digamma f", digamma_f},
    {"trigamma f", trigamma_f}, {"normal_hazard f", normal_hazard_f}, {"hypot f", hypot_f},
    {"gammainc f", gammainc_f}, {"zeta f", zeta_f}, {"ndtri f", ndtri_f}, {"bessel_fall f", bessel_fall_f},
    {"i0 f", i0_f}, {"i1 f", i1_f}, {"i0e f", i0e_f}, {"i1e f", i1e_f},
    {"exp f", exp_f}, {"expm1 f", expm1_f}, {"sinh f", sinh_f}, {"cosh f", cosh_f}, {"log f", natural_log_f},
    {"log1p f", log1p_f}, {"arcsinh f", asinh_f}, {"arccosh f", acosh_f}, {"arctanh f", atanh_f}, {"cbrt f", cbrt_f},
    {"tan f", tan_f}, {"arcsin f", asin_f}, {"arccos f", acos_f}, {"arctan f", atan_f}, {"arctan2 f", atan2_f},
    {"power f", power_f},
};

/* Blocks. ---------------------------------------------------------------------------------------------------------- */

/* Compute all steps for some rows of a block; `begun` if not for the first of a piece of its columns. */
static void run_rows(const Job *job, npy_intp row, npy_intp rows, npy_intp column, int begun, char *memory) {
    npy_intp number = row / job->group, in_group = row % job->group;
    npy_intp columns = job->columns - column < job->block_columns ? job->columns - column : job->block_columns;
    for (int s = 0; s < job->step_count; s++) {
        const Step *step = &job->steps[s];
        char *start[MOST_OPERANDS + 1];
        npy_intp outer[MOST_OPERANDS + 1], inner[MOST_OPERANDS + 1], leap[MOST_OPERANDS + 1];
        for (int k = 0; k <= step->arity; k++) {
            const Value *value = &job->values[step->operands[k]];
            inner[k] = value->strides[2];
            if (value->data) {
                npy_intp i = value->piece && value->axis == 1 ? in_group / value->piece : in_group;
                npy_intp j = value->piece && value->axis == 2 ? column / value->piece : column;
                start[k] = value->data + number * value->strides[0] + i * value->strides[1] + j * value->strides[2];
                outer[k] = value->strides[1];
                leap[k] = value->strides[0] - (job->group - 1) * outer[k]; /* from the last row of a group to the next */
            } else {
                start[k] = memory + value->offset;
                leap[k] = outer[k] = columns * inner[k];
            }
        }
        npy_intp piece = job->values[step->operands[step->arity]].piece;
        if (piece) {
            Rows operands[MOST_OPERANDS + 1];
            for (int k = 0; k <= step->arity; k++) operands[k] = (Rows){start[k], outer[k]};
            ((Reduction *)step->loop)(operands, rows, columns, piece, begun);
            continue;
        }
        npy_intp count = step->is_flat ? rows * columns : columns;
        if (step->data == PLANES) {
            for (npy_intp i = 0, n = job->group - in_group; i < rows; i += n, n = job->group) {
                if (n > rows - i) n = rows - i;
                if (step->is_flat) n = rows;
                ((Plane *)step->loop)(start, step->is_flat ? 1 : n, count, outer, inner);
                for (int k = 0; k <= step->arity; k++) start[k] += (n - 1) * outer[k] + leap[k];
            }
            continue;
        }
        for (npy_intp i = 0, rest = job->group - in_group; i < (step->is_flat ? 1 : rows); i++) {
            char *arguments[MOST_OPERANDS + 1]; /* a loop may change them */
            for (int k = 0; k <= step->arity; k++) arguments[k] = start[k];
            ((Loop *)step->loop)(arguments, &count, inner, step->data);
            if (--rest) {
                for (int k = 0; k <= step->arity; k++) start[k] += outer[k];
            } else {
                for (int k = 0; k <= step->arity; k++) start[k] += leap[k];
                rest = job->group;
            }
        }
    }
}

static void run_block(const Job *job, npy_intp block, char *memory) {
    npy_intp column = block % job->blocks_of_a_row * job->block_columns;
    npy_intp stretch = block / job->blocks_of_a_row / job->blocks_of_a_stretch;
    npy_intp first = block / job->blocks_of_a_row % job->blocks_of_a_stretch * job->block_rows;
    npy_intp rows = job->stretch - first < job->block_rows ? job->stretch - first : job->block_rows;
    for (npy_intp i = 0; i < rows; i += job->rows_at_once) {
        npy_intp count = rows - i < job->rows_at_once ? rows - i : job->rows_at_once;
        run_rows(job, stretch * job->stretch + first + i, count, column, i > 0, memory);
    }
}

/* Take blocks until none is left: first those of a range, then those of the next. Each thread has memory of a number. */
static void take_blocks(Job *job, long range, long number) {
    char *memory = job->memory + number * job->buffers;
    for (int k = 0; k < job->range_count; k++) {
        Range *taken = &job->ranges[(range + k) % job->range_count];
        npy_intp first;
        while ((first = shared_add(&taken->next, job->taken)) < taken->end) {
            for (npy_intp i = first; i < first + job->taken && i < taken->end; i++) job->compute(job, i, memory);
        }
    }
}

/* Threads. --------------------------------------------------------------------------------------------------------- */

static Lock owner = LOCK_FREE;    /* held by the thread whose job the others share */
static Lock sleeping = LOCK_FREE; /* guards `sleepers` and the condition */
static Condition called = NOBODY_WAITS;
static Shared calls;   /* the number of jobs so far */
static Shared inside;  /* how many threads may look at the present job */
static Shared present; /* the job, as a number */
static Shared started; /* how many threads have begun */
static int sleepers;
static long threads;
static long other_cores; /* that this process may use; see `pend` */

/* After a job the next may come soon, and to wake a thread takes longer than a job: wait for a while for a number to
   change; return whether it did. Whoever else wants the core has it after the first microseconds. */
static int spin_while(Shared *number, intptr_t same) {
    for (int i = 0; i < SPINS; i++) {
        if (shared_glance(number) != same) return 1;
        PAUSE();
    }
    const double end = seconds_now() + YIELDING;
    do {
        for (int i = 0; i < YIELDS; i++) {
            if (shared_glance(number) != same) return 1;
            PAUSE();
            if (i % 16 == 0) yield_core();
        }
    } while (seconds_now() < end);
    return shared_get(number) != same;
}

WORK_OF_THREAD(help) {
    const long range = (long)shared_add(&started, 1) + 1; /* that of the thread whose job it is has number 0 */
    intptr_t seen = 0;
    for (;;) {
        if (!spin_while(&calls, seen)) {
            lock_take(&sleeping);
            sleepers++;
            while (shared_get(&calls) == seen) wait_for(&called, &sleeping);
            sleepers--;
            lock_give(&sleeping);
        }
        seen = shared_get(&calls);
        shared_add(&inside, 1);
        Job *job = (Job *)shared_get(&present);
        if (job) {
            long number = (long)shared_add(&job->helpers, 1) + 1;
            if (number <= job->most_helpers) take_blocks(job, range, number);
        }
        shared_add(&inside, -1);
    }
    return NO_RESULT;
}

static void start_threads(long wanted) {
    if (threads < wanted) threads += start(help, wanted - threads);
}

/* A forked process has only the thread that forked. */
static void forget_threads(void) {
    owner = (Lock)LOCK_FREE;
    sleeping = (Lock)LOCK_FREE;
    called = (Condition)NOBODY_WAITS;
    shared_set(&inside, 0);
    shared_set(&present, 0);
    shared_set(&started, 0);
    sleepers = threads = 0;
}

/* Compute all blocks, with other threads unless another job has them. */
static void share(Job *job) {
    const int is_shared = job->most_helpers > 0 && job->blocks > 1 && lock_try(&owner);
    Range ranges[MOST_RANGES];
    job->ranges = ranges;
    job->range_count = !is_shared ? 1 : job->most_helpers < MOST_RANGES ? (int)job->most_helpers + 1 : MOST_RANGES;
    for (int i = 0; i < job->range_count; i++) {
        shared_set(&ranges[i].next, job->blocks * i / job->range_count);
        ranges[i].end = job->blocks * (i + 1) / job->range_count;
    }
    if (!is_shared) {
        take_blocks(job, 0, 0);
        return;
    }
    start_threads(job->most_helpers);
    shared_set(&present, (intptr_t)job);
    shared_add(&calls, 1);
    lock_take(&sleeping);
    for (long i = 0; i < sleepers && i < job->most_helpers; i++) wake_one(&called);
    lock_give(&sleeping);
    take_blocks(job, 0, 0);
    shared_set(&present, 0);
    for (int i = 0; shared_get(&inside) > 0; i++) {
        if (i < SPINS) PAUSE();
        else yield_core();
    }
    lock_give(&owner);
}

#include "products.h"
#include "batches.h"
#include "moves.h"
#include "windows.h"
#include "convolve.h"
#include "picks.h"
#include "each_row.h"
#include "fourier.h"
#include "foreign.h"
#include "runner.h"

/* Python. ---------------------------------------------------------------------------------------------------------- */

static int loop_of(const PyUFuncObject *ufunc, const char *types, Py_ssize_t length, Loop **loop, void **data) {
    if (ufunc->nout != 1 || ufunc->nargs != length) return 0;
    for (int i = 0; i < ufunc->ntypes; i++) {
        if (ufunc->functions[i] && !memcmp(ufunc->types + (npy_intp)i * ufunc->nargs, types, length)) {
            *loop = (Loop *)ufunc->functions[i];
            *data = ufunc->data ? (void *)ufunc->data[i] : NULL;
            return 1;
        }
    }
    return 0;
}

PyDoc_STRVAR(find_doc, "find(ufunc, types)\n\n"
    "Return the loop of one of NumPy's ufuncs for operands and results of some types, as two addresses; None if the\n"
    "ufunc has no such loop. `types` has a byte for each: NumPy's number of the type.");

static PyObject *find(PyObject *module, PyObject *args) {
    PyObject *object;
    const char *types;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "Oy#", &object, &types, &length)) return NULL;
    if (strcmp(Py_TYPE(object)->tp_name, "numpy.ufunc")) return PyErr_Format(PyExc_TypeError, "expected a ufunc");
    Loop *loop;
    void *data;
    if (!loop_of((PyUFuncObject *)object, types, length, &loop, &data)) Py_RETURN_NONE;
    return Py_BuildValue("(NN)", PyLong_FromVoidPtr((void *)loop), PyLong_FromVoidPtr(data));
}

/* Find the loops of NumPy's that those of whole rows call. */
static int find_row_loops(void) {
    const char floats[] = {NPY_FLOAT, NPY_FLOAT}, doubles[] = {NPY_DOUBLE, NPY_DOUBLE};
    PyObject *numpy = PyImport_ImportModule("numpy"), *exp = NULL, *log = NULL;
    int found = numpy && (exp = PyObject_GetAttrString(numpy, "exp")) && (log = PyObject_GetAttrString(numpy, "log"));
    if (found && !(loop_of((PyUFuncObject *)exp, doubles, 2, &exp_d, &exp_data_d) &&
                   loop_of((PyUFuncObject *)log, floats, 2, &log_f, &log_data_f) &&
                   loop_of((PyUFuncObject *)log, doubles, 2, &log_d, &log_data_d))) {
        PyErr_SetString(PyExc_ImportError, "NumPy has no loops for exponentials or logarithms of floats");
        found = 0;
    }
    Py_XDECREF(numpy);
    Py_XDECREF(exp);
    Py_XDECREF(log);
    return found ? 0 : -1;
}

PyDoc_STRVAR(own_doc, "own(name)\n\nReturn the loop of this module that has a name, as two addresses; None if there is none.");

static PyObject *own(PyObject *module, PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    for (size_t i = 0; i < sizeof OWN_LOOPS / sizeof *OWN_LOOPS; i++) {
        if (!strcmp(OWN_LOOPS[i].name, text))
            return Py_BuildValue("(NN)", PyLong_FromVoidPtr(OWN_LOOPS[i].loop), PyLong_FromVoidPtr(OWN_LOOPS[i].data));
    }
    Py_RETURN_NONE;
}

/* Read where a value is: an array of any axes whose elements are those of the shape, side by side; one of the axes of
   the shape, which may be broadcast; such an array for reductions of pieces, their axis, and the size of a piece; or the
   bytes of an element in a buffer. */
static int read_value(PyObject *object, Job *job, Py_ssize_t index, npy_intp *largest) {
    Value *value = &job->values[index];
    npy_intp size;
    if (PyTuple_Check(object)) {
        if (!PyArg_ParseTuple(object, "Oin", &object, &value->axis, &value->piece)) return -1;
        if (value->piece < 1 || value->axis < 1 || value->axis > 2) {
            PyErr_SetString(PyExc_ValueError, "expected pieces of some rows or columns");
            return -1;
        }
    }
    if (PyArray_Check(object)) {
        PyArrayObject *array = (PyArrayObject *)object;
        value->data = PyArray_BYTES(array);
        size = PyArray_ITEMSIZE(array);
        if (size > *largest) *largest = size;
        if (!value->piece && PyArray_IS_C_CONTIGUOUS(array) && PyArray_SIZE(array) == job->rows * job->columns) {
            value->strides[2] = size;
            value->strides[1] = job->columns * value->strides[2];
            value->strides[0] = job->group * value->strides[1];
            return 0;
        }
        if (PyArray_NDIM(array) != job->ndim) {
            PyErr_SetString(PyExc_ValueError, "expected arrays of as many axes as the shape");
            return -1;
        }
        const npy_intp sizes[3] = {job->groups, job->group, job->columns};
        for (int axis = 3 - job->ndim; axis < 3; axis++) {
            npy_intp full = sizes[axis], own = PyArray_DIM(array, axis - 3 + job->ndim);
            if (value->piece && axis == value->axis) full = (full + value->piece - 1) / value->piece;
            if (own != full && (value->piece || own != 1)) {
                PyErr_SetString(PyExc_ValueError, "expected arrays that broadcast to the shape");
                return -1;
            }
            value->strides[axis] = own == 1 && !(value->piece && axis == 2) ? 0 : PyArray_STRIDE(array, axis - 3 + job->ndim);
        }
        return 0;
    }
    size = value->strides[2] = PyLong_AsSsize_t(object);
    if (size > *largest) *largest = size;
    value->data = NULL;
    return PyErr_Occurred() ? -1 : 0;
}

/* Whether the distance from a row to the next is the same everywhere. */
static int are_rows_even(const Value *value, const Job *job) {
    return !value->data || job->groups == 1 || value->strides[0] == job->group * value->strides[1];
}

static int read_step(PyObject *object, Step *step, const Job *job) {
    PyObject *positions, *loop, *data;
    if (!PyArg_ParseTuple(object, "(OO)O!", &loop, &data, &PyTuple_Type, &positions)) return -1;
    step->loop = PyLong_AsVoidPtr(loop);
    step->data = PyLong_AsVoidPtr(data);
    step->arity = (int)PyTuple_GET_SIZE(positions) - 1;
    if (PyErr_Occurred()) return -1;
    if (!step->loop || step->arity < 1 || step->arity > MOST_OPERANDS) {
        PyErr_SetString(PyExc_ValueError, "expected a loop of one to four operands");
        return -1;
    }
    for (int k = 0; k <= step->arity; k++) {
        step->operands[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(positions, k));
        if (PyErr_Occurred()) return -1;
        if (step->operands[k] < 0 || step->operands[k] >= job->value_count) {
            PyErr_SetString(PyExc_IndexError, "a step has no such value");
            return -1;
        }
    }
    const Value *result = &job->values[step->operands[step->arity]];
    const int is_reduction = step->data == REDUCES || step->data == STACKS || step->data == MULTIPLIES;
    if (is_reduction != (result->piece > 0) || (is_reduction && (result->axis == 1) != (step->data == STACKS))) {
        PyErr_SetString(PyExc_ValueError, "expected a reduction where the result has pieces, and nowhere else");
        return -1;
    }
    if (!is_reduction) return 0;
    if (step->arity != (step->data == MULTIPLIES ? 2 : 1) || (result->axis == 2 && result->piece > LARGEST_PIECE)) {
        PyErr_SetString(PyExc_ValueError, "expected one operand, or two whose product is reduced, and pieces of few elements");
        return -1;
    }
    for (int k = 0; k < step->arity; k++) {
        const Value *operand = &job->values[step->operands[k]];
        if (job->columns > 1 && operand->strides[2] != result->strides[2]) {
            PyErr_SetString(PyExc_ValueError, "expected elements side by side, which are reduced");
            return -1;
        }
        if (result->axis == 2 && job->groups > 1 && !(are_rows_even(operand, job) && are_rows_even(result, job))) {
            PyErr_SetString(PyExc_ValueError, "expected rows at equal distances, which are reduced");
            return -1;
        }
    }
    return 0;
}

static int read_steps(PyObject *steps, Job *job) {
    for (int i = 0; i < job->step_count; i++)
        if (read_step(PyList_GET_ITEM(steps, i), &job->steps[i], job)) return -1;
    return 0;
}

/* Divide the arrays into blocks of about so many elements, and lay out the buffers. A block has whole pieces. Where its
   columns are reduced, it may have more elements, which are computed in turn: long rows are read quicker. */
static void divide(Job *job, npy_intp elements) {
    npy_intp piece = 1, stacked = 1;
    for (int i = 0; i < job->value_count; i++) {
        const Value *value = &job->values[i];
        if (value->axis == 2 && value->piece > piece) piece = value->piece;
        if (value->axis == 1 && value->piece > stacked) stacked = value->piece;
    }
    for (int s = 0; s < job->step_count; s++)
        if (job->steps[s].data == RUNS && elements < job->columns) elements = job->columns; /* it needs whole rows */
    job->stretch = stacked > 1 ? job->group : job->rows;
    elements = elements < piece ? piece : elements / piece * piece;
    job->block_columns = job->columns < elements ? job->columns : elements;
    job->rows_at_once = elements / job->block_columns;
    job->block_rows = job->rows_at_once < stacked ? stacked : job->rows_at_once / stacked * stacked;
    if (job->block_rows > job->stretch) job->block_rows = job->stretch;
    if (job->rows_at_once > stacked || job->rows_at_once > job->block_rows) job->rows_at_once = job->block_rows;
    job->blocks_of_a_row = (job->columns + job->block_columns - 1) / job->block_columns;
    job->blocks_of_a_stretch = (job->stretch + job->block_rows - 1) / job->block_rows;
    job->blocks = job->blocks_of_a_row * job->blocks_of_a_stretch * (job->rows / job->stretch);
    for (int i = 0; i < job->value_count; i++) {
        Value *value = &job->values[i];
        if (!value->data) {
            value->offset = job->buffers;
            npy_intp bytes = job->rows_at_once * job->block_columns * value->strides[2];
            job->buffers += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
    }
    for (int s = 0; s < job->step_count; s++) {
        Step *step = &job->steps[s];
        step->is_flat = step->data != RUNS;
        for (int k = 0; k <= step->arity && job->block_rows > 1; k++) {
            Value *value = &job->values[step->operands[k]];
            int is_run = job->group == 1 || value->strides[1] == job->columns * value->strides[2];
            if (job->groups > 1) is_run &= value->strides[0] == job->group * job->columns * value->strides[2];
            if (job->block_columns < job->columns) is_run &= value->strides[2] == 0; /* a block has parts of rows */
            if (value->data && !is_run) step->is_flat = 0;
        }
    }
}

/* A job of steps on values, which are read next; `groups`, `group` and `columns` are set. `end_job` follows in any case. */
static int prepare_job(Job *job, Py_ssize_t value_count, Py_ssize_t step_count) {
    job->rows = job->groups * job->group;
    job->value_count = (int)value_count;
    job->step_count = (int)step_count;
    job->values = calloc(value_count + 1, sizeof *job->values);
    job->steps = calloc(step_count + 1, sizeof *job->steps);
    if (job->values && job->steps) return 0;
    PyErr_NoMemory();
    return -1;
}

/* The same for arrays of a shape of two or three sizes. */
static int begin_job(Job *job, PyObject *shape, Py_ssize_t value_count, Py_ssize_t step_count, long most_helpers) {
    *job = (Job){.compute = run_block, .groups = 1, .most_helpers = most_helpers};
    job->ndim = (int)PyTuple_GET_SIZE(shape);
    if (!(job->ndim == 3 ? PyArg_ParseTuple(shape, "nnn", &job->groups, &job->group, &job->columns)
                         : PyArg_ParseTuple(shape, "nn", &job->group, &job->columns)))
        return -1;
    return prepare_job(job, value_count, step_count);
}

/* Run a job whose values and steps are known, by blocks of at most so many bytes of the largest elements. */
static int run_job(Job *job, npy_intp block, npy_intp itemsize) {
    job->taken = block < TAKEN ? (int)(TAKEN / (block > 1 ? block : 1)) : 1;
    if (job->rows <= 0 || job->columns <= 0) return 0;
    divide(job, block > itemsize ? block / itemsize : 1);
    if (job->buffers && !(job->memory = allocate_aligned(ALIGNMENT, job->buffers * (job->most_helpers + 1)))) {
        PyErr_NoMemory();
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    fenv_t environment;
    feholdexcept(&environment); /* loops leave flags, which are not this thread's */
    share(job);
    fesetenv(&environment);
    Py_END_ALLOW_THREADS
    return 0;
}

static void end_job(Job *job) {
    free_aligned(job->memory);
    free(job->values);
    free(job->steps);
}

PyDoc_STRVAR(run_doc, "run(shape, values, steps, block, helpers)\n\n"
    "Compute elementwise steps by blocks.\n\n"
    "Args:\n"
    "  shape: two or three sizes, those of the results.\n"
    "  values: what steps read and write: contiguous arrays of as many elements, or arrays of these axes that broadcast to\n"
    "    `shape`, or, for results that are not kept, the bytes of an element. For a reduction a tuple of an array, the axis of three that is reduced, 1 or 2,\n"
    "    and the number of elements of which each is the reduction; all reductions have pieces of one size.\n"
    "  steps: for each a loop, of `find` or `own`, and the positions of its operands and its result in `values`.\n"
    "  block: the most bytes of a block of one value.\n"
    "  helpers: how many threads may help.\n\n"
    "Raises:\n"
    "  MemoryError: there is no memory for the blocks.");

static PyObject *run(PyObject *module, PyObject *args) {
    PyObject *shape, *values, *steps;
    Job job;
    npy_intp itemsize = 1, block;
    long helpers;
    if (!PyArg_ParseTuple(args, "O!O!O!nl", &PyTuple_Type, &shape, &PyList_Type, &values, &PyList_Type, &steps, &block, &helpers))
        return NULL;
    int failed = begin_job(&job, shape, PyList_GET_SIZE(values), PyList_GET_SIZE(steps), helpers);
    for (int i = 0; !failed && i < job.value_count; i++) failed = read_value(PyList_GET_ITEM(values, i), &job, i, &itemsize);
    failed = failed || read_steps(steps, &job) || run_job(&job, block, itemsize);
    end_job(&job);
    return failed ? NULL : Py_NewRef(Py_None);
}

#include "reduced.h"

/* Memory. ---------------------------------------------------------------------------------------------------------- */

enum {
    ALIGNED = 1 << 16,    /* the least bytes that are aligned: compiled programs copy less in no time */
    HUGE_PAGES = 1 << 22, /* the least bytes that may be in large pages */
};

/* All memory is the C library's, so that NumPy's own functions take it back, whatever its size. */
static void *allocate(void *ctx, size_t size) {
    const PyDataMem_Handler *usual = ctx;
    if (size < ALIGNED || !ALIGNED_IS_FREED) return usual->allocator.malloc(usual->allocator.ctx, size);
    char *memory = allocate_aligned(ALIGNMENT, size);
    if (memory && size >= HUGE_PAGES) use_large_pages(memory, size); /* as NumPy does */
    return memory;
}

static void *allocate_zeros(void *ctx, size_t count, size_t size) {
    const PyDataMem_Handler *usual = ctx;
    return usual->allocator.calloc(usual->allocator.ctx, count, size);
}

static void *reallocate(void *ctx, void *memory, size_t size) {
    const PyDataMem_Handler *usual = ctx;
    return usual->allocator.realloc(usual->allocator.ctx, memory, size);
}

static void release(void *ctx, void *memory, size_t size) {
    const PyDataMem_Handler *usual = ctx;
    usual->allocator.free(usual->allocator.ctx, memory, size);
}

static PyDataMem_Handler aligned = {
    .name = "pullback", .version = 1,
    .allocator = {.malloc = allocate, .calloc = allocate_zeros, .realloc = reallocate, .free = release},
};

PyDoc_STRVAR(align_doc, "align()\n\n"
    "Let NumPy align the memory of large arrays, in the present context, as compiled programs want it. They copy what is\n"
    "not aligned. Memory that is filled with zeros, or that grows, is not. A handler of the user's stays.");

/* The handler, borrowed. */
static PyObject *aligned_handler(void) {
    static PyObject *handler;
    if (handler == NULL) {
        const PyDataMem_Handler *usual = PyCapsule_GetPointer(PyDataMem_DefaultHandler, "mem_handler");
        if (usual == NULL) return NULL;
        aligned.allocator.ctx = (void *)usual;
        handler = PyCapsule_New(&aligned, "mem_handler", NULL);
    }
    return handler;
}

static PyObject *align(PyObject *module, PyObject *unused) {
    PyObject *handler = aligned_handler(), *present = handler ? PyDataMem_GetHandler() : NULL;
    if (present == NULL) return NULL;
    int is_usual = present == PyDataMem_DefaultHandler;
    Py_DECREF(present);
    if (is_usual) {
        PyObject *before = PyDataMem_SetHandler(handler);
        if (before == NULL) return NULL;
        Py_DECREF(before);
    }
    Py_RETURN_NONE;
}

#include "expressions.h"
#include "choice.h"

/* Operands of large results. --------------------------------------------------------------------------------------- */

static npy_intp least = (npy_intp)1 << 31; /* elements of a large array */

/* Whether two values are arrays that broadcast to a large one. Large arrays themselves are here if they were made by an
   operation that is not elementwise, such as views that repeat a row. */
static int is_spread(PyObject *x, PyObject *y) {
    if (!PyArray_Check(x) || !PyArray_Check(y)) return 0;
    PyArrayObject *a = (PyArrayObject *)x, *b = (PyArrayObject *)y;
    const npy_intp m = PyArray_SIZE(a), n = PyArray_SIZE(b);
    if (m < least && n < least && m * n < least) return 0; /* both factors are below 2**31 */
    npy_intp size = 1;
    for (int i = PyArray_NDIM(a) - 1, j = PyArray_NDIM(b) - 1; i >= 0 || j >= 0; i--, j--) {
        const npy_intp p = i >= 0 ? PyArray_DIM(a, i) : 1, q = j >= 0 ? PyArray_DIM(b, j) : 1;
        if (p != q && p != 1 && q != 1) return 0;
        if (p == 0 || q == 0) return 0;
        const npy_intp both = p > q ? p : q;
        size = both >= least || size * both >= least ? least : size * both; /* factors are at most 2**31 */
    }
    return size >= least;
}

PyDoc_STRVAR(limit_doc, "limit(size)\n\nSet the least elements of a large array; return the former.");

static PyObject *limit(PyObject *module, PyObject *size) {
    npy_intp former = least, wanted = PyLong_AsSsize_t(size);
    if (PyErr_Occurred()) return NULL;
    least = wanted < 1 ? 1 : wanted > (npy_intp)1 << 31 ? (npy_intp)1 << 31 : wanted;
    return PyLong_FromSsize_t(former);
}

PyDoc_STRVAR(in_memory_doc, "in_memory(x, y)\n\n"
    "Return both values, if NumPy has to compute with them now; None if one has no elements, or if they are arrays that\n"
    "broadcast to a large one.");

static PyObject *in_memory(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "expected two values");
    for (int i = 0; i < 2; i++)
        if (!PyArray_Check(args[i]) && !PyArray_IsScalar(args[i], Generic)) Py_RETURN_NONE;
    if (is_spread(args[0], args[1])) Py_RETURN_NONE;
    return PyTuple_Pack(2, args[0], args[1]);
}

/* Products of many complex numbers, by the loop of the module, on all cores. */
enum { MANY_COMPLEX = 1 << 12, COMPLEX_SHARE = 1 << 17, COMPLEX_BLOCK = 1 << 16 };

static int are_many_complex(PyObject *x, PyObject *y) {
    if (!PyArray_CheckExact(x) || !PyArray_CheckExact(y)) return 0;
    PyArrayObject *a = (PyArrayObject *)x, *b = (PyArrayObject *)y;
    const int type = PyArray_TYPE(a);
    return (type == NPY_CFLOAT || type == NPY_CDOUBLE) && PyArray_TYPE(b) == type && PyArray_SIZE(a) >= MANY_COMPLEX &&
           PyArray_ISCARRAY_RO(a) && PyArray_ISCARRAY_RO(b) && PyArray_SAMESHAPE(a, b);
}

static PyObject *product(PyObject *x, PyObject *y) {
    if (!are_many_complex(x, y)) return PyNumber_Multiply(x, y);
    PyArrayObject *a = (PyArrayObject *)x;
    const npy_intp size = PyArray_SIZE(a), shares = size / COMPLEX_SHARE;
    PyObject *out = PyArray_SimpleNew(PyArray_NDIM(a), PyArray_DIMS(a), PyArray_TYPE(a)), *values[] = {x, y, out};
    PyObject *shape = out ? Py_BuildValue("nn", (Py_ssize_t)1, size) : NULL;
    if (!shape) {
        Py_XDECREF(out);
        return NULL;
    }
    Job job;
    npy_intp itemsize = 1;
    int failed = begin_job(&job, shape, 3, 1, shares < other_cores ? (long)shares : other_cores);
    for (int i = 0; !failed && i < 3; i++) failed = read_value(values[i], &job, i, &itemsize);
    if (!failed) {
        job.steps[0] = (Step){.loop = PyArray_TYPE(a) == NPY_CFLOAT ? product_cf : product_cd, .arity = 2, .operands = {0, 1, 2}};
        failed = run_job(&job, COMPLEX_BLOCK, itemsize);
    }
    end_job(&job);
    Py_DECREF(shape);
    if (failed) Py_CLEAR(out);
    return out;
}

PyDoc_STRVAR(product_doc, "product(x, y, /)\n--\n\n"
    "Return ``x * y``. Many complex numbers are multiplied on all cores, each rounded in the same way.");

static PyObject *product_of(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    if (count != 2) return PyErr_Format(PyExc_TypeError, "expected two values");
    return product(args[0], args[1]);
}

/* Python's operators, which refuse such arrays. */
#define OPERATOR(name, result)                                                                              \
    static PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t count) {                      \
        if (count == 2 && python.array && (Py_TYPE(args[0]) == python.absent || Py_TYPE(args[1]) == python.absent)) { \
            PyErr_SetNone(PyExc_TypeError); /* nobody reads what it says */                                  \
            return NULL;                                                                                    \
        }                                                                                                   \
        if (count != 2 || is_spread(args[0], args[1]))                                                      \
            return PyErr_Format(PyExc_TypeError, "expected two values whose result is not large");          \
        return result;                                                                                      \
    }
OPERATOR(add, PyNumber_Add(args[0], args[1]))
OPERATOR(sub, PyNumber_Subtract(args[0], args[1]))
OPERATOR(mul, product(args[0], args[1]))
OPERATOR(truediv, PyNumber_TrueDivide(args[0], args[1]))
OPERATOR(eq, PyObject_RichCompare(args[0], args[1], Py_EQ))
OPERATOR(ne, PyObject_RichCompare(args[0], args[1], Py_NE))
OPERATOR(lt, PyObject_RichCompare(args[0], args[1], Py_LT))
OPERATOR(le, PyObject_RichCompare(args[0], args[1], Py_LE))
OPERATOR(gt, PyObject_RichCompare(args[0], args[1], Py_GT))
OPERATOR(ge, PyObject_RichCompare(args[0], args[1], Py_GE))
#define OPERATOR_METHOD(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, "Python's operator; refuses arrays whose result is large."}

static PyMethodDef METHODS[] = {
    {"find", find, METH_VARARGS, find_doc},
    {"own", own, METH_O, own_doc},
    {"run", run, METH_VARARGS, run_doc},
    {"deferred", (PyCFunction)(void (*)(void))deferred, METH_FASTCALL, deferred_doc},
    {"evaluate", (PyCFunction)(void (*)(void))evaluate, METH_FASTCALL, evaluate_doc},
    {"run_plan", (PyCFunction)(void (*)(void))run_plan_of, METH_FASTCALL, run_plan_doc},
    {"pend", pend, METH_VARARGS, pend_doc},
    {"align", align, METH_NOARGS, align_doc},
    {"fold", fold, METH_VARARGS, fold_doc},
    {"reduced", (PyCFunction)(void (*)(void))reduced, METH_FASTCALL, reduced_doc},
    {"each_row", (PyCFunction)(void (*)(void))each_row, METH_FASTCALL, each_row_doc},
    {"multiply", multiply, METH_VARARGS, multiply_doc},
    {"move", move, METH_VARARGS, move_doc},
    {"windows", windows, METH_VARARGS, windows_doc},
    {"convolve", convolve, METH_VARARGS, convolve_doc},
    {"convolves", convolves, METH_NOARGS, convolves_doc},
    {"pick", pick, METH_VARARGS, pick_doc},
    {"add_at", add_at, METH_VARARGS, add_at_doc},
    {"count", count, METH_VARARGS, count_doc},
    {"turn", turn, METH_VARARGS, turn_doc},
    {"use_blas", use_blas, METH_O, use_blas_doc},
    {"alone", alone, METH_O, alone_doc},
    {"decompose", decompose, METH_VARARGS, decompose_doc},
    {"limit", limit, METH_O, limit_doc},
    {"loops_go_on", loops_go_on, METH_O, loops_go_on_doc},
    {"taking", taking, METH_NOARGS, taking_doc},
    {"product", (PyCFunction)(void (*)(void))product_of, METH_FASTCALL, product_doc},
    {"in_memory", (PyCFunction)(void (*)(void))in_memory, METH_FASTCALL, in_memory_doc},
    OPERATOR_METHOD(add), OPERATOR_METHOD(sub), OPERATOR_METHOD(mul), OPERATOR_METHOD(truediv),
    OPERATOR_METHOD(eq), OPERATOR_METHOD(ne), OPERATOR_METHOD(lt), OPERATOR_METHOD(le), OPERATOR_METHOD(gt), OPERATOR_METHOD(ge),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "loops", "Elementwise programs by blocks, on all cores.", -1, METHODS};

PyMODINIT_FUNC PyInit_loops(void) {
    import_array();
    if (find_row_loops() < 0) return NULL;
    in_forked_child(forget_threads);
    in_forked_child(forget_products);
    if (PyType_Ready(&RUNNER) < 0 || PyType_Ready(&BY_SIZE) < 0) return NULL;
    PyObject *module = PyModule_Create(&MODULE);
    if (module == NULL) return NULL;
    if (PyModule_AddObjectRef(module, "Runner", (PyObject *)&RUNNER) < 0
        || PyModule_AddObjectRef(module, "BySize", (PyObject *)&BY_SIZE) < 0) Py_CLEAR(module);
    return module;
}

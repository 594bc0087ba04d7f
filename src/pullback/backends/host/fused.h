/* Two operations in one pass, each element rounded as by two. A light operation takes as long as its access to memory, or
   to a buffer in the cache. Elements are side by side, and what is one number has a stride of zero. */

/* Products of three: operands are arrays or numbers. */
#define PRODUCT_OF_THREE(name, type)                                                                        \
    WIDE static void name(char **args, npy_intp const *counts, npy_intp const *strides, void *data) {       \
        const npy_intp count = *counts, item = sizeof(type);                                                \
        const type *p = (const type *)args[0], *q = (const type *)args[1], *r = (const type *)args[2];      \
        type *out = (type *)args[3];                                                                        \
        const int kind = (strides[0] == item) * 4 + (strides[1] == item) * 2 + (strides[2] == item);        \
        if (p == q && q == r && kind == 7) {                                                                \
            EACH(i, count) out[i] = p[i] * p[i] * p[i];                                                     \
        } else if (kind == 7) {                                                                             \
            EACH(i, count) out[i] = p[i] * q[i] * r[i];                                                     \
        } else if (kind == 6) {                                                                             \
            const type c = *r;                                                                              \
            EACH(i, count) out[i] = p[i] * q[i] * c;                                                        \
        } else if (kind == 5) {                                                                             \
            const type b = *q;                                                                              \
            EACH(i, count) out[i] = p[i] * b * r[i];                                                        \
        } else if (kind == 3) {                                                                             \
            const type a = *p;                                                                              \
            EACH(i, count) out[i] = a * q[i] * r[i];                                                        \
        } else {                                                                                            \
            EACH(i, count)                                                                                  \
                out[i] = *(const type *)(args[0] + i * strides[0]) * *(const type *)(args[1] + i * strides[1]) \
                         * *(const type *)(args[2] + i * strides[2]);                                       \
        }                                                                                                   \
    }
PRODUCT_OF_THREE(product_of_three_f, float)
PRODUCT_OF_THREE(product_of_three_d, double)

/* The smaller of a number and the larger of another number and x. Of equal numbers, which may be zeros, and of NaN, the
   result is that of the two loops. */
enum { CLAMPED_AT_ONCE = 64 };
#define CLAMPED(type, above, below)                                                                         \
    EACH(i, n) { const type t = low above x[i] ? low : x[i]; out[i] = high below t ? high : t; }
#define CLAMP(name, type, larger, smaller)                                                                  \
    WIDE static void name(char **a, npy_intp const *count, npy_intp const *strides, void *data) {           \
        const npy_intp n = *count;                                                                          \
        const type *x = (const type *)a[0], low = *(const type *)a[1], high = *(const type *)a[2];          \
        type *out = (type *)a[3];                                                                           \
        if (strides[0] != sizeof(type) || strides[1] || strides[2] || low != low || high != high) {         \
            type some[CLAMPED_AT_ONCE];                                                                                \
            const npy_intp first[3] = {strides[0], strides[1], sizeof(type)}, second[3] = {sizeof(type), strides[2], sizeof(type)}; \
            for (npy_intp i = 0; i < n; i += CLAMPED_AT_ONCE) {                                                        \
                const npy_intp rest = n - i < CLAMPED_AT_ONCE ? n - i : CLAMPED_AT_ONCE;                                          \
                char *of_first[3] = {a[0] + i * strides[0], a[1] + i * strides[1], (char *)some};           \
                char *of_second[3] = {(char *)some, a[2] + i * strides[2], (char *)(out + i)};              \
                larger(of_first, &rest, first, data);                                                       \
                smaller(of_second, &rest, second, data);                                                    \
            }                                                                                               \
        } else if (signbit(low) && signbit(high)) {                                                         \
            CLAMPED(type, >, <=)                                                                            \
        } else if (signbit(low)) {                                                                          \
            CLAMPED(type, >, <)                                                                             \
        } else if (signbit(high)) {                                                                         \
            CLAMPED(type, >=, <=)                                                                           \
        } else {                                                                                            \
            CLAMPED(type, >=, <)                                                                            \
        }                                                                                                   \
    }
CLAMP(clamp_f, float, maximum_f, minimum_f)
CLAMP(clamp_d, double, maximum_d, minimum_d)

/* Of a choice by a comparison of x with a number one case is y, and the other the product of y and a number. */
#define SCALED_CHOICE(name, type, compared, yes, no)                                                        \
    WIDE static void name(char **args, npy_intp const *count, npy_intp const *strides, void *data) {        \
        const npy_intp n = *count, item = sizeof(type);                                                     \
        type *out = (type *)args[4];                                                                        \
        if (strides[0] == item && strides[1] == 0 && strides[2] == item && strides[3] == 0) {               \
            const type *x = (const type *)args[0], *y = (const type *)args[2];                              \
            const type bound = *(const type *)args[1], factor = *(const type *)args[3];                     \
            EACH(i, n) { const type b = y[i], scaled = b * factor; out[i] = x[i] compared bound ? yes : no; } \
        } else {                                                                                            \
            EACH(i, n) {                                                                                    \
                const type b = *(const type *)(args[2] + i * strides[2]);                                   \
                const type scaled = b * *(const type *)(args[3] + i * strides[3]);                          \
                const int holds = *(const type *)(args[0] + i * strides[0]) compared *(const type *)(args[1] + i * strides[1]); \
                out[i] = holds ? yes : no;                                                                  \
            }                                                                                               \
        }                                                                                                   \
    }
#define SCALED_CHOICES(name, compared)                                                                      \
    SCALED_CHOICE(name##_or_scaled_f, float, compared, b, scaled)                                           \
    SCALED_CHOICE(name##_or_scaled_d, double, compared, b, scaled)                                          \
    SCALED_CHOICE(name##_scaled_f, float, compared, scaled, b)                                              \
    SCALED_CHOICE(name##_scaled_d, double, compared, scaled, b)
SCALED_CHOICES(if_less, <)
SCALED_CHOICES(if_less_equal, <=)
SCALED_CHOICES(if_greater, >)
SCALED_CHOICES(if_greater_equal, >=)
SCALED_CHOICES(if_equal, ==)
SCALED_CHOICES(if_not_equal, !=)

/* A number where x is equal to another number, and the sign of x elsewhere. */
#define SIGN_OR_NUMBER(name, type)                                                                          \
    WIDE static void name(char **a, npy_intp const *count, npy_intp const *strides, void *data) {           \
        const npy_intp n = *count;                                                                          \
        type *out = (type *)a[3];                                                                           \
        if (strides[0] == sizeof(type) && strides[1] == 0 && strides[2] == 0) {                             \
            const type *p = (const type *)a[0], bound = *(const type *)a[1], number = *(const type *)a[2];  \
            EACH(i, n) { const type x = p[i]; out[i] = x == bound ? number : SIGN(type, x); }               \
        } else {                                                                                            \
            EACH(i, n) {                                                                                    \
                const type x = *(const type *)(a[0] + i * strides[0]), bound = *(const type *)(a[1] + i * strides[1]); \
                out[i] = x == bound ? *(const type *)(a[2] + i * strides[2]) : SIGN(type, x);               \
            }                                                                                               \
        }                                                                                                   \
    }
#define SIGN(type, x) (x > 0 ? (type)1 : x < 0 ? (type)-1 : x)
SIGN_OR_NUMBER(sign_or_number_f, float)
SIGN_OR_NUMBER(sign_or_number_d, double)

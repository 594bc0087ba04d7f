/* Functions of whole rows: softmax, logarithms of sums of exponentials, their derivatives, norms, and products of all
   other elements. A row stays in the cache between the passes over it. Rows are reduced by pieces of pieces, as elsewhere;
   logarithms, and exponentials of doubles, are NumPy's loops. */

enum { MOST_OF_A_ROW = 1 << 21, MOST_PIECES = MOST_OF_A_ROW / LARGEST_PIECE };

/* NumPy's loops, and their data, for floats of 32 and of 64 bits. */
static Loop *exp_d, *log_f, *log_d;
static void *exp_data_d, *log_data_f, *log_data_d;

#define OF_A_ROW(name, reduction, type)                                                                     \
    static type name(const type *x, npy_intp n) {                                                           \
        type pieces[MOST_PIECES];                                                                           \
        Rows operands[2] = {{(const char *)x, 0}, {(const char *)pieces, 0}};                               \
        do {                                                                                                \
            reduction(operands, 1, n, LARGEST_PIECE, 0);                                                    \
            operands[0] = operands[1];                                                                      \
            n = (n + LARGEST_PIECE - 1) / LARGEST_PIECE;                                                    \
        } while (n > 1);                                                                                    \
        return pieces[0];                                                                                   \
    }
OF_A_ROW(total_f, sum_f, float)
OF_A_ROW(total_d, sum_d, double)
OF_A_ROW(peak_f, largest_f, float)
OF_A_ROW(peak_d, largest_d, double)

/* Write exp(x - peak) for numbers x up to the peak. */
WIDE static void exponentials_f(const float *x, float peak, float *out, npy_intp n) {
    EACH(i, n) out[i] = 0x1p-64f * enlarged_exp(up_to(peak - x[i], 110), 0);
}
WIDE static void exponentials_d(const double *x, double peak, double *out, npy_intp n) {
    char *arguments[2] = {(char *)out, (char *)out};
    const npy_intp strides[2] = {sizeof(double), sizeof(double)};
    EACH(i, n) out[i] = x[i] - peak;
    exp_d(arguments, &n, strides, exp_data_d);
}

/* The logarithm of one number, by NumPy's loop. */
#define LOGARITHM(letter, type)                                                                             \
    static type logarithm_##letter(type x) {                                                                \
        const npy_intp one = 1, steps[2] = {sizeof(type), sizeof(type)};                                    \
        type out;                                                                                           \
        char *arguments[2] = {(char *)&x, (char *)&out};                                                    \
        log_##letter(arguments, &one, steps, log_data_##letter);                                            \
        return out;                                                                                         \
    }
LOGARITHM(f, float)
LOGARITHM(d, double)

/* The derivatives take the result of a function, and a tangent or a cotangent. */
#define SOFTMAX(letter, type)                                                                               \
    WIDE static void softmax_##letter(char **a, npy_intp const *count, npy_intp const *strides, void *data) { \
        const npy_intp n = *count;                                                                          \
        type *out = (type *)a[1];                                                                           \
        exponentials_##letter((const type *)a[0], peak_##letter((const type *)a[0], n), out, n);            \
        const type factor = 1 / total_##letter(out, n);                                                     \
        EACH(i, n) out[i] *= factor;                                                                        \
    }                                                                                                       \
    WIDE static void log_softmax_##letter(char **a, npy_intp const *count, npy_intp const *strides, void *data) { \
        const npy_intp n = *count;                                                                          \
        const type *x = (const type *)a[0], peak = peak_##letter(x, n);                                     \
        type *out = (type *)a[1];                                                                           \
        exponentials_##letter(x, peak, out, n);                                                             \
        const type logarithm = logarithm_##letter(total_##letter(out, n));                                  \
        EACH(i, n) out[i] = (x[i] - peak) - logarithm;                                                      \
    }                                                                                                       \
    WIDE static void softmax_slope_##letter(char **a, npy_intp const *count, npy_intp const *strides, void *data) { \
        const npy_intp n = *count;                                                                          \
        const type *y = (const type *)a[0], *t = (const type *)a[1];                                        \
        type *out = (type *)a[2];                                                                           \
        EACH(i, n) out[i] = y[i] * t[i];                                                                    \
        const type sum = total_##letter(out, n);                                                            \
        EACH(i, n) out[i] = y[i] * (t[i] - sum);                                                            \
    }                                                                                                       \
    WIDE static void log_softmax_slope_##letter(char **a, npy_intp const *count, npy_intp const *strides, void *data) { \
        const npy_intp n = *count;                                                                          \
        const type *t = (const type *)a[1];                                                                 \
        type *out = (type *)a[2];                                                                           \
        exponentials_##letter((const type *)a[0], 0, out, n);                                               \
        EACH(i, n) out[i] *= t[i];                                                                          \
        const type sum = total_##letter(out, n);                                                            \
        EACH(i, n) out[i] = t[i] - sum;                                                                     \
    }                                                                                                       \
    WIDE static void log_softmax_pull_##letter(char **a, npy_intp const *count, npy_intp const *strides, void *data) { \
        const npy_intp n = *count;                                                                          \
        const type *t = (const type *)a[1], sum = total_##letter(t, n);                                     \
        type *out = (type *)a[2];                                                                           \
        exponentials_##letter((const type *)a[0], 0, out, n);                                               \
        EACH(i, n) out[i] = t[i] - out[i] * sum;                                                            \
    }
SOFTMAX(f, float)
SOFTMAX(d, double)

/* The logarithm of the sum of exponentials of a row. That of no terms, or of -inf alone, is -inf; inf and NaN stay. */
#define LOGSUMEXP(letter, type)                                                                             \
    static void logsumexp_##letter(char **a, npy_intp const *count, npy_intp const *strides, void *data) {  \
        const type *x = (const type *)a[0], peak = peak_##letter(x, *count);                                \
        type parts[MOST_OF_A_ROW / PART], buffer[PART];                                                     \
        npy_intp filled = 0;                                                                                \
        if (!isfinite(peak)) {                                                                              \
            *(type *)a[1] = peak;                                                                           \
            return;                                                                                         \
        }                                                                                                   \
        for (npy_intp i = 0; i < *count; i += PART) {                                                       \
            const npy_intp n = *count - i < PART ? *count - i : PART;                                       \
            exponentials_##letter(x + i, peak, buffer, n);                                                  \
            parts[filled++] = total_##letter(buffer, n);                                                    \
        }                                                                                                   \
        *(type *)a[1] = peak + logarithm_##letter(total_##letter(parts, filled));                           \
    }                                                                                                       \
    /* Its derivatives, which are 0 where there are no terms; what an infinite term leaves of others is 0. */ \
    WIDE static void logsumexp_slope_##letter(char **a, npy_intp const *count, npy_intp const *strides, void *data) { \
        const npy_intp n = *count;                                                                          \
        const type *x = (const type *)a[0], peak = peak_##letter(x, n);                                     \
        type *out = (type *)a[1];                                                                           \
        if (!isfinite(peak)) {                                                                              \
            EACH(i, n) out[i] = peak < 0 || (peak > 0 && x[i] < peak) ? 0 : (type)NAN;                      \
            return;                                                                                         \
        }                                                                                                   \
        exponentials_##letter(x, peak, out, n);                                                             \
        const type factor = 1 / total_##letter(out, n);                                                     \
        EACH(i, n) out[i] *= factor;                                                                        \
    }
LOGSUMEXP(f, float)
LOGSUMEXP(d, double)

/* The root of the sum of squares of a row. Where squares overflow, or underflow, numbers are divided by the largest size. */
#define NORM(letter, type, root, size, least)                                                               \
    WIDE static void norm_##letter(char **a, npy_intp const *count, npy_intp const *strides, void *data) {  \
        const npy_intp n = *count;                                                                          \
        const type *x = (const type *)a[0];                                                                 \
        type parts[MOST_OF_A_ROW / PART], buffer[PART], peak = 0;                                           \
        npy_intp filled = 0;                                                                                \
        parts[0] = 0;                                                                                       \
        for (npy_intp i = 0; i < n; i += PART)                                                              \
            parts[filled++] = dot_part_##letter(x + i, x + i, n - i < PART ? n - i : PART);                 \
        type out = root(total_##letter(parts, filled));                                                     \
        if (!(out > least && out < INFINITY)) {                                                             \
            for (npy_intp i = 0; i < n; i++) peak = size(x[i]) > peak ? size(x[i]) : peak;                  \
            if (out == out && peak > 0 && peak < INFINITY) {                                                \
                filled = 0;                                                                                 \
                for (npy_intp i = 0; i < n; i += PART) {                                                    \
                    const npy_intp m = n - i < PART ? n - i : PART;                                         \
                    EACH(k, m) buffer[k] = x[i + k] / peak;                                                 \
                    parts[filled++] = dot_part_##letter(buffer, buffer, m);                                 \
                }                                                                                           \
                out = peak * root(total_##letter(parts, filled));                                           \
            }                                                                                               \
        }                                                                                                   \
        *(type *)a[1] = out;                                                                                \
    }
NORM(f, float, sqrtf, fabsf, 3.1401849e-16f)
NORM(d, double, sqrt, fabs, 1.0010415475915505e-146)

/* For each element of a row the product of all others: of those before it, and of those behind it. Long rows consist of as
   many interleaved chains as there are LANES; the products of the other chains are factors of a chain's last product. */
#define OTHERS(letter, type)                                                                                \
    INLINE void others_of_few_##letter(const type *x, type *out, npy_intp n) {                              \
        type product = 1;                                                                                   \
        for (npy_intp i = 0; i < n; i++) { out[i] = product; product *= x[i]; }                             \
        product = 1;                                                                                        \
        for (npy_intp i = n - 1; i >= 0; i--) { out[i] *= product; product *= x[i]; }                       \
    }                                                                                                       \
    WIDE static void others_##letter(char **a, npy_intp const *count, npy_intp const *strides, void *data) { \
        const npy_intp n = *count, whole = n / LANES * LANES;                                               \
        const type *restrict x = (const type *)a[0];                                                        \
        type *restrict out = (type *)a[1];                                                                  \
        type products[LANES], others[LANES];                                                                \
        if (n < 2 * LANES) {                                                                                \
            others_of_few_##letter(x, out, n);                                                              \
            return;                                                                                         \
        }                                                                                                   \
        for (int l = 0; l < LANES; l++) products[l] = 1;                                                    \
        ROLLED for (npy_intp i = 0; i < whole; i += LANES)                                                  \
            for (int l = 0; l < LANES; l++) { out[i + l] = products[l]; products[l] *= x[i + l]; }          \
        for (int l = 0; l < n - whole; l++) { out[whole + l] = products[l]; products[l] *= x[whole + l]; }  \
        others_of_few_##letter(products, others, LANES);                                                    \
        for (int l = 0; l < n - whole; l++) { out[whole + l] *= others[l]; others[l] *= x[whole + l]; }     \
        ROLLED for (npy_intp i = whole - LANES; i >= 0; i -= LANES)                                         \
            for (int l = 0; l < LANES; l++) { out[i + l] *= others[l]; others[l] *= x[i + l]; }             \
    }
OTHERS(f, float)
OTHERS(d, double)

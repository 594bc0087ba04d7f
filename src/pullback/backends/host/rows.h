/* Functions of whole rows: softmax, its logarithm, and their derivatives. A row stays in the cache between the passes over
   it. Rows are reduced by pieces of pieces, as elsewhere; logarithms, and exponentials of doubles, are NumPy's loops. */

enum { MOST_PIECES = (1 << 21) / LARGEST_PIECE }; /* of a row */

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
        const npy_intp n = *count, one = 1, steps[2] = {sizeof(type), sizeof(type)};                        \
        const type *x = (const type *)a[0], peak = peak_##letter(x, n);                                     \
        type *out = (type *)a[1], sum, logarithm;                                                           \
        exponentials_##letter(x, peak, out, n);                                                             \
        sum = total_##letter(out, n);                                                                       \
        char *arguments[2] = {(char *)&sum, (char *)&logarithm};                                            \
        log_##letter(arguments, &one, steps, log_data_##letter);                                            \
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

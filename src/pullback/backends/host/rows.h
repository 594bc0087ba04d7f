/* Functions of whole rows: softmax, and its logarithm. A row stays in the cache between the passes over it.

   Each pass computes what an operation on the whole array computes, in the same order, so the bits are the same: the
   exponential function and the logarithm are NumPy's loops, and rows are reduced by pieces of pieces. */

enum { MOST_PIECES = (1 << 21) / LARGEST_PIECE }; /* of a row */

/* NumPy's loops, and their data, for floats of 32 and of 64 bits. */
static Loop *exp_f, *exp_d, *log_f, *log_d;
static void *exp_data_f, *exp_data_d, *log_data_f, *log_data_d;

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

#define SOFTMAX(letter, type)                                                                               \
    WIDE static void shift_##letter(const type *x, type shift, type *out, npy_intp n) {                     \
        for (npy_intp i = 0; i < n; i++) out[i] = x[i] - shift;                                             \
    }                                                                                                       \
    WIDE static void scale_##letter(type *out, type factor, npy_intp n) {                                   \
        for (npy_intp i = 0; i < n; i++) out[i] *= factor;                                                  \
    }                                                                                                       \
    /* Write exp(x - peak), and return the sum. */                                                          \
    static type exponentials_##letter(const type *x, type peak, type *out, npy_intp n) {                    \
        char *arguments[2] = {(char *)out, (char *)out};                                                    \
        const npy_intp strides[2] = {sizeof(type), sizeof(type)};                                           \
        shift_##letter(x, peak, out, n);                                                                    \
        exp_##letter(arguments, &n, strides, exp_data_##letter);                                            \
        return total_##letter(out, n);                                                                      \
    }                                                                                                       \
    static void softmax_##letter(char **a, npy_intp const *count, npy_intp const *strides, void *data) {    \
        const type *x = (const type *)a[0];                                                                 \
        type *out = (type *)a[1], sum = exponentials_##letter(x, peak_##letter(x, *count), out, *count);    \
        scale_##letter(out, 1 / sum, *count);                                                               \
    }                                                                                                       \
    static void log_softmax_##letter(char **a, npy_intp const *count, npy_intp const *strides, void *data) { \
        const type *x = (const type *)a[0], peak = peak_##letter(x, *count);                                \
        type *out = (type *)a[1], sum = exponentials_##letter(x, peak, out, *count), logarithm;             \
        char *arguments[2] = {(char *)&sum, (char *)&logarithm};                                            \
        const npy_intp one = 1, steps[2] = {sizeof(type), sizeof(type)};                                    \
        log_##letter(arguments, &one, steps, log_data_##letter);                                            \
        shift_##letter(x, peak, out, *count);                                                               \
        shift_##letter(out, logarithm, out, *count);                                                        \
    }
SOFTMAX(f, float)
SOFTMAX(d, double)

/* Elementary functions of doubles, as shadows of numbers of single precision: their errors are some units of the last bit.

   They reduce their operands by the tables of numbers of two doubles. What needs more, such as a huge number, becomes NaN,
   and NumPy computes it. Where the module has no function of its own, NumPy's would take several times as long: it calls the
   system's function for each element.

   Source: P. T. P. Tang, Table-lookup algorithms for elementary functions, ARITH-10 (1991). */

INLINE double double_exp_more(double x, uint64_t *count) {
    const double *step = pair_constants.exp_pieces;
    double near = fabs(x) < 700 ? x : 0, shifted = near * (1 / (step[0] + step[1])) + ROUNDING, n = shifted - ROUNDING;
    double r = ((near - n * step[0]) - n * step[1]) - n * step[2], rr = r * r;
    *count = bits_of(shifted) - bits_of(ROUNDING) + ((uint64_t)1 << 20);
    return r + rr * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720)))));
}

INLINE double double_exp(double x) {
    uint64_t count;
    double more = double_exp_more(x, &count);
    Pair power = pair_constants.exps[count & (EXPS - 1)];
    double scale = of_bits(((count >> 6) - ((uint64_t)1 << 14) + 1023) << 52);
    double y = (power.hi + (power.lo + power.hi * more)) * scale;
    return fabs(x) < 700 ? y : x < -746 ? 0 : NAN;
}

INLINE double double_expm1(double x) {
    uint64_t count;
    double more = double_exp_more(x, &count);
    Pair power = pair_constants.exps[count & (EXPS - 1)];
    double scale = of_bits(((count >> 6) - ((uint64_t)1 << 14) + 1023) << 52);
    double y = (power.hi * scale - 1) + (power.lo + power.hi * more) * scale;
    return x == 0 ? x : fabs(x) < 700 ? y : x < -746 ? -1 : NAN;
}

INLINE double double_log(double x) {
    const double *c = PAIR_LOG, *two = pair_constants.log_pieces;
    const uint64_t bias = (uint64_t)1024 << 52;
    int is_usual = (x > 1e-290) & (x < 1e290);
    double size = is_usual ? x : 1;
    uint64_t power = (bits_of(size) - bits_of(0.7071) + bias) >> 52; /* the exponent plus 1024 */
    double n = of_bits(power | bits_of(0x1p52)) - (0x1p52 + 1024);
    double mantissa = of_bits(bits_of(size) - (power << 52) + bias); /* from 0.7071 on, below 1.4142 */
    double shifted = mantissa * 64 + ROUNDING, centre = (shifted - ROUNDING) / 64;
    double r = (mantissa - centre) / centre, rr = r * r;
    double tail = rr * (-0.5 + r * SUM_8(r, c));
    Pair known = pair_constants.logs[(bits_of(shifted) - bits_of(ROUNDING)) & 127];
    double y = (n * two[0] + known.hi) + (r + ((known.lo + n * two[1]) + tail));
    return is_usual ? y : NAN;
}

INLINE double double_log1p(double x) {
    Pair s = pair_sum(1, x);
    return x == 0 ? x : double_log(s.hi) + s.lo / s.hi;
}

INLINE double double_circular(double x, int is_cosine) {
    const double *step = pair_constants.angle_pieces, *a = PAIR_SINE, *b = PAIR_COSINE;
    int is_usual = fabs(x) < 1.5e6;
    double near = is_usual ? x : 0, shifted = near * (1 / (step[0] + step[1])) + ROUNDING, n = shifted - ROUNDING;
    double r = (((near - n * step[0]) - n * step[1]) - n * step[2]) - n * step[3], rr = r * r;
    uint64_t j = bits_of(shifted) & (ANGLES - 1);
    Pair s = pair_constants.sines[j], c = pair_constants.cosines[j];
    double sine = r + r * rr * (a[0] + rr * (a[1] + rr * a[2])), less = rr * (-0.5 + rr * (b[0] + rr * b[1]));
    double y = is_cosine ? c.hi + (c.lo + (c.hi * less - s.hi * sine)) : s.hi + (s.lo + (s.hi * less + c.hi * sine));
    return is_usual ? y : NAN;
}

INLINE double double_sin(double x) { return double_circular(x, 0); }
INLINE double double_cos(double x) { return double_circular(x, 1); }

INLINE double double_tanh(double x) {
    double e = double_expm1(2 * (fabs(x) < 60 ? x : copysign(60, x)));
    return x != x ? x : e / (e + 2);
}

INLINE double double_logistic(double x) {
    double e = double_exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

INLINE double double_larger(double x, double y) { return y < x ? x : y; }
INLINE double double_smaller(double x, double y) { return x < y ? x : y; }

#define UNARY(name, expression)                                                                             \
    WIDE static void double_kernel_##name(npy_intp n, const double *const *in, double *out, double *none) { \
        const double *a = in[0];                                                                            \
        EACH(i, n) {                                                                                        \
            const double x = a[i];                                                                          \
            out[i] = expression;                                                                            \
        }                                                                                                   \
    }
#define BINARY(name, expression)                                                                            \
    WIDE static void double_kernel_##name(npy_intp n, const double *const *in, double *out, double *none) { \
        const double *a = in[0], *b = in[2];                                                                \
        EACH(i, n) {                                                                                        \
            const double x = a[i], y = b[i];                                                                \
            out[i] = expression;                                                                            \
        }                                                                                                   \
    }
BINARY(add, x + y)
BINARY(sub, x - y)
BINARY(mul, x *y)
BINARY(div, x / y)
BINARY(larger, double_larger(x, y))
BINARY(smaller, double_smaller(x, y))
UNARY(neg, -x)
UNARY(abs, fabs(x))
UNARY(square, x *x)
UNARY(sqrt, sqrt(x))
UNARY(exp, double_exp(x))
UNARY(expm1, double_expm1(x))
UNARY(log, double_log(x))
UNARY(log1p, double_log1p(x))
UNARY(sin, double_sin(x))
UNARY(cos, double_cos(x))
UNARY(tanh, double_tanh(x))
UNARY(logistic, double_logistic(x))
#undef UNARY
#undef BINARY

static PairKernel *const DOUBLE_LOOPS[] = {
    double_kernel_add, double_kernel_sub, double_kernel_mul, double_kernel_div, double_kernel_larger, double_kernel_smaller,
    double_kernel_neg, double_kernel_abs, double_kernel_square, double_kernel_sqrt, double_kernel_exp, double_kernel_expm1,
    double_kernel_log, double_kernel_log1p, double_kernel_sin, double_kernel_cos, double_kernel_tanh, double_kernel_logistic,
};

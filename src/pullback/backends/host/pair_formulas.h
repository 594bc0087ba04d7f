/* The formulas of numbers of two doubles that multiply, and the loops of all of them.

   `pairs.c` includes this file for each way to make an exact product: by Dekker's splitting, and by an instruction that
   multiplies and adds with one rounding, where the processor has it. Both find the rest of a product exactly, so that the
   bits are the same. V adds the way to a name, LOOP is in front of loops, and REST is the rest of a product. */

INLINE Pair V(pair_product)(double a, double b) {
    const double p = a * b;
    return (Pair){p, REST(a, b, p)};
}

INLINE Pair V(pair_mul)(Pair x, Pair y) {
    Pair p = V(pair_product)(x.hi, y.hi);
    return pair_normal(p.hi, p.lo + (x.hi * y.lo + x.lo * y.hi));
}

INLINE Pair V(pair_square)(Pair x) {
    Pair p = V(pair_product)(x.hi, x.hi);
    return pair_normal(p.hi, p.lo + 2.0 * (x.hi * x.lo));
}

INLINE Pair V(pair_div)(Pair x, Pair y) {
    double q = x.hi / y.hi;
    Pair p = V(pair_product)(q, y.hi);
    return pair_normal(q, ((x.hi - p.hi) - p.lo + x.lo - q * y.lo) / y.hi);
}

INLINE Pair V(pair_sqrt)(Pair x) {
    double q = sqrt(x.hi);
    Pair p = V(pair_product)(q, q);
    double more = ((x.hi - p.hi) - p.lo + x.lo) / (2 * q);
    return pair_normal(q, x.hi == 0 ? 0 : more);
}

/* Split the exponent of exp(x), for abs(x) < 700. */
INLINE Exponential V(pair_exp_parts)(Pair x) {
    const double *step = pair_constants.exp_pieces, *c = PAIR_EXP;
    double near = fabs(x.hi) < 700 ? x.hi : 0, shifted = near * (1 / (step[0] + step[1])) + ROUNDING;
    double count = shifted - ROUNDING;
    Pair s = pair_sum(near - count * step[0], -count * step[1]);
    Pair r = pair_normal(s.hi, (x.lo + s.lo) - count * step[2]);
    Pair half = pair_scaled(V(pair_square)(r), 0.5);
    double tail = c[0] + r.hi * (c[1] + r.hi * (c[2] + r.hi * (c[3] + r.hi * (c[4] + r.hi * c[5]))));
    Exponential found = {pair_add(r, pair_normal(half.hi, half.lo + r.hi * half.hi * tail))};
    found.count = bits_of(shifted) - bits_of(ROUNDING) + ((uint64_t)1 << 20);
    return found;
}

INLINE Pair V(pair_exp_of)(Pair x, Exponential parts) {
    Pair power = pair_constants.exps[parts.count & (EXPS - 1)];
    Pair y = pair_add(power, V(pair_mul)(power, parts.more));
    double scale = of_bits(((parts.count >> 6) - ((uint64_t)1 << 14) + 1023) << 52);
    int is_usual = fabs(x.hi) < 660, is_zero = x.hi < -746;
    return (Pair){is_zero ? 0 : y.hi * scale, is_zero ? 0 : is_usual ? y.lo * scale : NAN};
}

INLINE Pair V(pair_exp)(Pair x) { return V(pair_exp_of)(x, V(pair_exp_parts)(x)); }

INLINE Pair V(pair_expm1)(Pair x) {
    Exponential parts = V(pair_exp_parts)(x);
    Pair y = pair_sub(V(pair_exp_of)(x, parts), (Pair){1, 0});
    int is_usual = (fabs(x.hi) > 1e-290) | (x.hi == 0);
    y = pair_if((parts.count == (uint64_t)1 << 20) & (fabs(x.hi) < 1), parts.more, y);
    return (Pair){x.hi == 0 ? x.hi : y.hi, is_usual ? y.lo : NAN};
}

INLINE Pair V(pair_log)(Pair x) {
    const double *c = PAIR_LOG, *two = pair_constants.log_pieces;
    const uint64_t bias = (uint64_t)1024 << 52;
    int is_usual = (x.hi > 1e-290) & (x.hi < 1e290);
    double size = is_usual ? x.hi : 1;
    uint64_t power = (bits_of(size) - bits_of(0.7071) + bias) >> 52; /* the exponent plus 1024 */
    double n = of_bits(power | bits_of(0x1p52)) - (0x1p52 + 1024);
    double mantissa = of_bits(bits_of(size) - (power << 52) + bias); /* from 0.7071 on, below 1.4142 */
    double shifted = mantissa * 64 + ROUNDING, centre = (shifted - ROUNDING) / 64;
    Pair u = pair_normal(mantissa - centre, x.lo * of_bits((uint64_t)(1023 + 1024 - power) << 52));
    Pair r = V(pair_div)(u, (Pair){centre, 0}), square = V(pair_square)(r), half = pair_scaled(square, -0.5);
    double tail = V(pair_mul)(square, r).hi * SUM_8(r.hi, c);
    Pair y = pair_add(r, pair_normal(half.hi, half.lo + tail));
    Pair known = pair_constants.logs[(bits_of(shifted) - bits_of(ROUNDING)) & 127];
    Pair sum = pair_add(pair_add(pair_normal(n * two[0], n * two[1]), known), y);
    y = pair_if((centre == 1) & (n == 0), y, sum);
    return (Pair){y.hi, is_usual ? y.lo : NAN};
}

INLINE Pair V(pair_log1p)(Pair x) {
    Pair s = pair_sum(1, x.hi), half = pair_scaled(V(pair_square)(x), -0.5);
    Pair small = pair_add(x, (Pair){half.hi, half.lo + x.hi * x.hi * x.hi / 3});
    Pair y = pair_if(fabs(x.hi) < 1e-8, small, V(pair_log)(pair_normal(s.hi, s.lo + x.lo)));
    int is_usual = (fabs(x.hi) > 1e-140) | (x.hi == 0);
    return (Pair){y.hi, is_usual ? y.lo : NAN};
}

/* The sine, or the cosine, by the angle next to x of which the table has both. */
INLINE Pair V(pair_circular)(Pair x, int is_cosine) {
    const double *step = pair_constants.angle_pieces, *a = PAIR_SINE, *b = PAIR_COSINE;
    int is_usual = fabs(x.hi) < 1.5e6;
    double near = is_usual ? x.hi : 0, shifted = near * (1 / (step[0] + step[1])) + ROUNDING;
    double count = shifted - ROUNDING;
    Pair p = pair_sum(near - count * step[0], -count * step[1]), q = pair_sum(p.hi, -count * step[2]);
    Pair r = pair_normal(q.hi, ((x.lo + p.lo) + q.lo) - count * step[3]), rr = V(pair_square)(r);
    uint64_t j = bits_of(shifted) & (ANGLES - 1);
    Pair s = pair_constants.sines[j], c = pair_constants.cosines[j];
    Pair sine = pair_normal(r.hi, r.lo + r.hi * rr.hi * (a[0] + rr.hi * (a[1] + rr.hi * (a[2] + rr.hi * a[3]))));
    Pair less = {-0.5 * rr.hi, -0.5 * rr.lo + rr.hi * rr.hi * (b[0] + rr.hi * (b[1] + rr.hi * b[2]))};
    Pair y = is_cosine ? pair_add(c, pair_sub(V(pair_mul)(c, less), V(pair_mul)(s, sine)))
                       : pair_add(s, pair_add(V(pair_mul)(s, less), V(pair_mul)(c, sine)));
    return (Pair){y.hi, is_usual ? y.lo : NAN};
}

INLINE Pair V(pair_sin)(Pair x) { return V(pair_circular)(x, 0); }

INLINE Pair V(pair_cos)(Pair x) { return V(pair_circular)(x, 1); }

INLINE Pair V(pair_tanh)(Pair x) {
    Pair e = V(pair_expm1)(pair_scaled(pair_if(fabs(x.hi) < 60, x, (Pair){copysign(60, x.hi), 0}), 2));
    return V(pair_div)(e, pair_add(e, (Pair){2, 0}));
}

INLINE Pair V(pair_logistic)(Pair x) {
    Pair one = {1, 0}, e = V(pair_exp)(pair_neg(pair_abs(x)));
    return V(pair_div)(pair_if(x.hi < 0, e, one), pair_add(one, e));
}

/* Loops over n numbers, whose doubles are side by side. -------------------------------------------------------------- */

#define UNARY(name, function)                                                                               \
    LOOP static void V(kernel_##name)(npy_intp n, const double *const *in, double *hi, double *lo) {        \
        const double *a = in[0], *b = in[1];                                                                \
        EACH(i, n) {                                                                                        \
            Pair y = function((Pair){a[i], b[i]});                                                          \
            hi[i] = y.hi;                                                                                   \
            lo[i] = y.lo;                                                                                   \
        }                                                                                                   \
    }
#define BINARY(name, function)                                                                              \
    LOOP static void V(kernel_##name)(npy_intp n, const double *const *in, double *hi, double *lo) {        \
        const double *a = in[0], *b = in[1], *c = in[2], *d = in[3];                                        \
        EACH(i, n) {                                                                                        \
            Pair y = function((Pair){a[i], b[i]}, (Pair){c[i], d[i]});                                      \
            hi[i] = y.hi;                                                                                   \
            lo[i] = y.lo;                                                                                   \
        }                                                                                                   \
    }
BINARY(add, pair_add)
BINARY(sub, pair_sub)
BINARY(mul, V(pair_mul))
BINARY(div, V(pair_div))
BINARY(larger, pair_larger)
BINARY(smaller, pair_smaller)
UNARY(neg, pair_neg)
UNARY(abs, pair_abs)
UNARY(square, V(pair_square))
UNARY(sqrt, V(pair_sqrt))
UNARY(exp, V(pair_exp))
UNARY(expm1, V(pair_expm1))
UNARY(log, V(pair_log))
UNARY(log1p, V(pair_log1p))
UNARY(sin, V(pair_sin))
UNARY(cos, V(pair_cos))
UNARY(tanh, V(pair_tanh))
UNARY(logistic, V(pair_logistic))
#undef UNARY
#undef BINARY

static PairKernel *const V(PAIR_LOOPS)[] = {
    V(kernel_add), V(kernel_sub), V(kernel_mul), V(kernel_div), V(kernel_larger), V(kernel_smaller),
    V(kernel_neg), V(kernel_abs), V(kernel_square), V(kernel_sqrt), V(kernel_exp), V(kernel_expm1),
    V(kernel_log), V(kernel_log1p), V(kernel_sin), V(kernel_cos), V(kernel_tanh), V(kernel_logistic),
};

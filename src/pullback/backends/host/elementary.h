/* Elementary functions of numbers in single precision, for processors on which NumPy has no wide vectors of them (own.py).
   Exponential and hyperbolic functions, logarithms and arctangents are computed in single precision; the others in double
   precision, and rounded once. Each is evaluated without branches, so that the compiler makes vectors of its loop; a few
   arguments that would need others are left to the C library, one by one. Errors in ulps are the largest of ten million
   numbers of all sizes. */

/* Exponential functions. ------------------------------------------------------------------------------------------- */

/* exp(x) as (1 + rest) * 2**power, where abs(rest) < 0.42, for x from -104 to 89; anything for NaN. */
typedef struct {
    float rest;
    int32_t power;
} Exponential;

INLINE Exponential exponential(float x) {
    const float rounding = 0x1.8p23f;
    float shifted = x * 1.44269504f + rounding, power = shifted - rounding;
    float r = (x - power * 0x1.62ep-1f) - power * 0x1.0bfbe8p-15f; /* the first product is exact */
    float series = 0.5f + r * (0.166665763f + r * (0.0416665561f + r * (0.00836317893f + r * 0.0013926184f)));
    return (Exponential){r + r * r * series, (int32_t)(bits_of_single(shifted) - bits_of_single(rounding))};
}

/* 2**n for n from -126 to 127. */
INLINE float power_of_two(int32_t n) { return single_of_bits((uint32_t)(n + 127) << 23); }

/* Half of an exponent, rounded down: the powers of two of both halves are neither subnormal nor infinite. */
INLINE int32_t half_of(int32_t n) { return ((n + 256) >> 1) - 128; }

/* exp(x) times 2**more; error 1.02 ulps. */
INLINE float scaled_exp(float x, int32_t more) {
    Exponential e = exponential(up_to(x < -104 ? -104 : x, 89.5f));
    int32_t power = e.power + more, half = half_of(power);
    return (1 + e.rest) * power_of_two(half) * power_of_two(power - half);
}

INLINE float exp_single(float x) { return x != x ? NAN : scaled_exp(x, 0); }

/* exp(x) - 1; error 1.7 ulps. */
INLINE float expm1_single(float x) {
    Exponential e = exponential(up_to(x < -18 ? -18 : x, 89));
    int32_t half = half_of(e.power), other = e.power - half;
    float small = e.rest * power_of_two(half) + (power_of_two(half) - power_of_two(-other));
    return x != x ? NAN : copysignf(small * power_of_two(other), x);
}

/* Errors 1.5 and 1.6 ulps. */
INLINE float cosh_single(float x) {
    float exp = scaled_exp(fabsf(x), -1);
    return x != x ? NAN : exp + 0.25f / exp;
}

INLINE float sinh_single(float x) {
    float size = fabsf(x), exp = scaled_exp(size, -1), s = x * x;
    float near = s * (0.166666672f + s * (0.00833333936f + s * (0.000198381021f + s * 2.80628024e-06f)));
    return x != x ? NAN : size < 1 ? x + x * near : copysignf(exp - 0.25f / exp, x);
}

/* Logarithms, and functions that are some. ------------------------------------------------------------------------- */

/* log(1 + rest) + power log(2), where the rest is from -0.293 to 0.415. */
INLINE float log_of_parts(float rest, float power) {
    float square = rest * rest;
    float series = 0.333333313f + rest * (-0.24999997f + rest * (0.200007156f + rest * (-0.166678026f + rest * (
    0.142490402f + rest * (-0.124256544f + rest * (0.1168558f + rest * (-0.114800684f + rest * 0.06971585f)))))));
    float small = square * rest * series - 0.5f * square;
    return power * 0x1.62ep-1f + (rest + (power * 0x1.0bfbe8p-15f + small)); /* the first product is exact */
}

/* The exponent of a positive number divided by a number from 1 / sqrt(2) to sqrt(2). */
INLINE int32_t exponent_of(float x) { return ((int32_t)bits_of_single(x) - 0x3f3504f3) >> 23; }
INLINE float divided(float x, int32_t exponent) { return single_of_bits(bits_of_single(x) - ((uint32_t)exponent << 23)); }

/* log(x); error 0.9 ulps. */
INLINE float log_single(float x) {
    float normal = x < 0x1p-126f ? x * 0x1p24f : x;
    int32_t exponent = exponent_of(normal);
    float power = (float)(exponent - (x < 0x1p-126f ? 24 : 0)), usual = log_of_parts(divided(normal, exponent) - 1, power);
    return ((x > 0) & (x < INFINITY)) ? usual : x == 0 ? -INFINITY : x > 0 ? x : NAN;
}

/* log(1 + x); error 1.4 ulps. The sum is rounded, so that its rest is computed from x, unless x is large. */
INLINE float log1p_single(float x) {
    float sum = 1 + x;
    int32_t exponent = exponent_of(sum), safe = x < 0x1p24f ? exponent : 0;
    float inverse = power_of_two(-safe), exact = x * inverse + (inverse - 1);
    float usual = log_of_parts(x < 0x1p24f ? exact : divided(sum, exponent) - 1, (float)exponent);
    return x == 0 ? x : ((x > -1) & (x < INFINITY)) ? usual : x == -1 ? -INFINITY : x > 0 ? x : NAN;
}

/* In double precision, for the functions below. */
INLINE double log_wide(double x) {
    double finite = x == INFINITY ? INFINITY : log_of(x);
    return x > 0 ? finite : x == 0 ? -INFINITY : x != x ? x : NAN;
}

INLINE double asinh_wide(double x) {
    double size = fabs(x), near = size - size * size * size * (1.0 / 6), far = log_wide(size + sqrt(size * size + 1));
    return copysign(size < 1e-3 ? near : far, x);
}

INLINE double acosh_wide(double x) {
    double usual = log_wide(x + sqrt((x - 1) * (x + 1)));
    return x < 1 ? NAN : usual;
}

INLINE double atanh_wide(double x) {
    double size = fabs(x), near = size + size * size * size * (1.0 / 3);
    double far = 0.5 * log_wide((1 + size) / (1 - size));
    return copysign(size < 1e-3 ? near : size > 1 ? NAN : far, x);
}

INLINE double cbrt_wide(double x) {
    double size = fabs(x);
    return size > 0 && size < INFINITY ? copysign(exp_of(log_of(size) * (1.0 / 3)), x) : x;
}

/* Inverse trigonometric functions. --------------------------------------------------------------------------------- */

/* The angle of the point (x, y), both of which are positive or zero; error 3e-11. It is that of a point whose angle is at
   most a sixteenth of a turn, after a turn by an eighth or a quarter. */
INLINE double angle_in_quadrant(double y, double x) {
    const double low = 0.41421356237309503, high = 2.4142135623730949;
    int is_high = y > high * x, is_middle = y > low * x;
    double above = is_high ? -x : is_middle ? y - x : y, below = is_high ? y : is_middle ? y + x : x;
    double ratio = above / below, s = ratio * ratio;
    double series = 0.9999999999783846 + s * (-0.33333332096926027 + s * (0.19999883803853233 + s * (
    -0.1428158730709012 + s * (0.11040471009581072 + s * (-0.0845608946699897 + s * 0.04707129655257451)))));
    return (is_high ? PI / 2 : is_middle ? PI / 4 : 0) + ratio * series;
}

/* The same in single precision; error of the functions 2 ulps. */
INLINE float angle_single(float y, float x) {
    const float low = 0.414213562f, high = 2.41421356f;
    float larger = y > x ? y : x, scale = larger > 1e38f ? 0.25f : 1, a = y * scale, b = x * scale;
    int is_high = a > high * b, is_middle = a > low * b;
    float above = is_high ? -b : is_middle ? a - b : a, below = is_high ? a : is_middle ? a + b : b;
    float ratio = above / below, s = ratio * ratio;
    float series = -0.333333313f + s * (0.199995399f + s * (-0.142639503f + s * (0.107436687f + s * -0.0645171851f)));
    float rest = (is_high ? -4.37113883e-08f : is_middle ? -2.18556941e-08f : 0) + ratio * s * series;
    return (is_high ? 1.57079637f : is_middle ? 0.785398185f : 0) + (ratio + rest);
}

INLINE float atan_single(float x) { return x != x ? x : copysignf(angle_single(fabsf(x), 1), x); }

INLINE float atan2_single(float y, float x) {
    float a = fabsf(y), b = fabsf(x), one_or_zero = a > 0 ? 1 : 0; /* both may be infinite, or zero */
    float angle = angle_single(a == b ? one_or_zero : a, a == b ? 1 : b);
    float beyond = 3.14159274f - (angle + 8.74227766e-08f);
    return copysignf((int32_t)bits_of_single(x) < 0 ? beyond : angle, y);
}

INLINE double asin_wide(double x) {
    double angle = angle_in_quadrant(fabs(x), sqrt((1 - x) * (1 + x)));
    return copysign(angle, x);
}

INLINE double acos_wide(double x) {
    double angle = angle_in_quadrant(sqrt((1 - x) * (1 + x)), fabs(x));
    return x < 0 ? PI - angle : angle;
}

/* The tangent of numbers of at most 1e5. Pi / 2 is a sum of three numbers, of 30 digits the first two. */
#define LARGEST_ANGLE 1e5f
INLINE double tan_wide(double x) {
    double shifted = x * (2 / PI) + ROUNDING, n = shifted - ROUNDING;
    double r = ((x - n * 0x1.921fb54p+0) - n * 0x1.10b46118p-30) - n * 0x1.313198a2e0370p-61, s = r * r;
    double sine = r * (0.9999999999956709 + s * (-0.16666666631577168 + s * (0.008333328781097757 + s * (
    -0.00019839201800436314 + s * 2.717341870116158e-06))));
    double cosine = 0.9999999999524657 + s * (-0.49999999614703977 + s * (0.04166661667759459 + s * (
    -0.001388661754772064 + s * 2.4379789395383755e-05)));
    int is_odd = (int)(bits_of(shifted) & 1);
    return (is_odd ? -cosine : sine) / (is_odd ? sine : cosine);
}

/* Loops. ----------------------------------------------------------------------------------------------------------- */

UNARY(exp_f, float, float, exp_single(x))
UNARY(expm1_f, float, float, expm1_single(x))
UNARY(cosh_f, float, float, cosh_single(x))
UNARY(sinh_f, float, float, sinh_single(x))
UNARY(natural_log_f, float, float, log_single(x))
UNARY(log1p_f, float, float, log1p_single(x))
SINGLE(asinh_f, OF_ALL(asinh_wide))
SINGLE(acosh_f, OF_ALL(acosh_wide))
SINGLE(atanh_f, OF_ALL(atanh_wide))
SINGLE(cbrt_f, OF_ALL(cbrt_wide))
UNARY(atan_f, float, float, atan_single(x))
SINGLE(asin_f, OF_ALL(asin_wide))
SINGLE(acos_f, OF_ALL(acos_wide))
SINGLE(tan_f,
    float most = 0;
    for (int l = 0; l < CHUNK; l++) most = fabsf(x[l]) > most ? fabsf(x[l]) : most;
    OF_ALL(tan_wide)
    if (most > LARGEST_ANGLE) {
        for (int l = 0; l < CHUNK; l++) if (fabsf(x[l]) > LARGEST_ANGLE) out[l] = tanf(x[l]);
    }
)

/* Statements for chunks of two operands. */
#define SINGLE_OF_TWO(name, statements)                                                                     \
    WIDE static void name(char **a, npy_intp const *count, npy_intp const *strides, void *data) {           \
        for (npy_intp first = 0; first < *count; first += CHUNK) {                                          \
            const int n = *count - first < CHUNK ? (int)(*count - first) : CHUNK;                           \
            float x[CHUNK], y[CHUNK], out[CHUNK];                                                           \
            read_chunk(x, a[0] + first * strides[0], strides[0], n);                                        \
            read_chunk(y, a[1] + first * strides[1], strides[1], n);                                        \
            statements                                                                                      \
            memcpy(a[2] + first * sizeof(float), out, n * sizeof(float));                                   \
        }                                                                                                   \
    }
SINGLE_OF_TWO(atan2_f,
    for (int l = 0; l < CHUNK; l++) out[l] = atan2_single(x[l], y[l]);
)
/* x**y: the C library has the rules for other bases than positive numbers, and for exponents that are not finite. */
SINGLE_OF_TWO(power_f,
    int others = 0;
    for (int l = 0; l < CHUNK; l++) {
        int is_usual = (x[l] > 0) & (x[l] < INFINITY) & (fabsf(y[l]) < INFINITY);
        double exponent = (double)y[l] * log_of(is_usual ? (double)x[l] : 1);
        out[l] = (float)exp_of(exponent < -200 ? -200 : exponent > 200 ? 200 : exponent);
        others |= !is_usual;
    }
    if (others) {
        for (int l = 0; l < CHUNK; l++)
            if (!((x[l] > 0) & (x[l] < INFINITY) & (fabsf(y[l]) < INFINITY))) out[l] = powf(x[l], y[l]);
    }
)

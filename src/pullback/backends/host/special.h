/* Special functions of numbers in single precision.

   Those of gamma, Bessel and zeta functions, of quantiles and of logarithms are computed in double precision and rounded
   once; exponential, logistic and error functions in single precision. Each is evaluated without branches, so that the
   compiler makes vectors of its loop.
   The polynomials of doubles interpolate a function at Chebyshev's points, in a variable from -1 to 1; those of singles
   have the least error at many points. Errors were computed with 40 digits, and those in ulps at nine million numbers.

   The compiler may not join a product and a sum to one rounding (setup.py): some processors have no such instruction,
   and the bits are the same on all. */

#define ROUNDING 0x1.8p52 /* a sum with it is rounded to an integer, which its last bits are */
#define ROOT_HALF 0.70710678118654752
#define PI 3.14159265358979324

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

/* Exponential function and logarithm. ------------------------------------------------------------------------------ */

#define LOG_2_HIGH 0x1.62e42fee00000p-1 /* its products with exponents are exact */
#define LOG_2_LOW 0x1.a39ef35793c76p-33

/* exp(x) for abs(x) < 500; error 1e-12. */
INLINE double exp_of(double x) {
    double shifted = x * 1.4426950408889634 + ROUNDING, power = shifted - ROUNDING;
    double s = ((x - power * LOG_2_HIGH) - power * LOG_2_LOW) * 2.8853900817779268;
    double fraction = 1.0 + s * (0.34657359027296675 + s * (0.06005662673953247 + s * (0.006938013676507416 + s * (
    0.0006011330724626599 + s * (4.166703302500202e-05 + s * (2.4067899769459122e-06 + s * (
    1.1960999533007262e-07 + s * 5.1778222182300066e-09)))))));
    return of_bits(bits_of(fraction) + (bits_of(shifted) << 52));
}

/* log(x) for finite numbers from 1e-300 on, also relative to log(x) near 1; error 1e-14. */
INLINE double log_of(double x) {
    const uint64_t least = bits_of(ROOT_HALF), bias = (uint64_t)1024 << 52;
    uint64_t power = (bits_of(x) - least + bias) >> 52;
    double e = of_bits(power | bits_of(0x1p52)) - (0x1p52 + 1024);
    double f = of_bits(bits_of(x) - (power << 52) + bias) - 1; /* x is (1 + f) * 2**e */
    double ratio = f / (f + 2), square = ratio * ratio, s = square * 67.941125483080572 - 1;
    double series = 0.6726167307481663 + s * (0.006013403829476028 + s * (6.407457855027886e-05 + s * (7.438034524249547e-07 + s * (
    9.087651953430001e-09 + s * 1.1481927902123764e-10))));
    return e * LOG_2_HIGH + (ratio * (2 + square * series) + e * LOG_2_LOW);
}

/* Error functions in double precision. ------------------------------------------------------------------------------- */

/* exp(x**2) erfc(x) for x >= 0; error 3e-11. The polynomial's variable is 1 / (x + 3). */
INLINE double scaled_tail(double x) {
    double u = 1 / (x + 3), s = u * 6 - 1;
    return u * (1.0740069070883398 + s * (0.8833944527643361 + s * (0.5902283568712466 + s * (0.31046727713552813 + s * (
    0.11952777001401597 + s * (0.02682706755561177 + s * (-0.0012125117668076958 + s * (-0.0030332443632784473 + s * (
    -0.0005478490048534832 + s * (0.0002746834004621534 + s * (0.00010640316997724133 + s * (
    -2.7415980423530756e-05 + s * (-1.5877225523232664e-05 + s * (2.387735877488366e-06 + s *
    1.592640986675195e-06))))))))))))));
}

INLINE double wide_half_gaussian(double x) {
    double half = x * x * 0.5;
    return exp_of(half > 150 ? -150 : -half);
}

INLINE double erfcx_of(double x) {
    double size = fabs(x), square = x * x, tail = scaled_tail(size);
    return x < 0 ? 2 * exp_of(square > 150 ? 150 : square) - tail : tail;
}

/* The normal density divided by the distribution function. */
INLINE double normal_hazard_of(double x) {
    double scaled = scaled_tail(fabs(x) * ROOT_HALF), density = wide_half_gaussian(x);
    double above = density * 0.39894228040143268 / (1 - 0.5 * density * scaled);
    return x < 0 ? 0.79788456080286536 / scaled : above;
}

INLINE double log_ndtr_of(double x) {
    double scaled = 0.5 * scaled_tail(fabs(x) * ROOT_HALF), tail = scaled * wide_half_gaussian(x);
    double logarithm = log_of(x < 0 ? scaled : 1 - tail);
    return x < 0 ? logarithm - x * x * 0.5 : tail < 1e-8 ? -tail : logarithm;
}

/* Functions in single precision, which are called for millions of numbers. ---------------------------------------------

   The terms of their polynomials are summed in pairs, and these in pairs: a processor that waits for each product and sum
   in turn takes half as long again. */

INLINE uint32_t bits_of_single(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE float single_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The smaller of a number and a bound; NaN stays. */
INLINE float up_to(float x, float bound) { return bound < x ? bound : x; }

/* A sum with it is rounded to an integer n, and its last bits are those of n + 191: in the place of the exponent, those
   of 2**(n + 64). */
#define ROUNDING_OF_EXPONENT 0x1.80017ep23f
#define LOG2_E 1.44269504f

/* exp(-x - rest) times 2**64, so that it is not subnormal, for x from 0 to 110 and a small rest; error 1 ulp. `powers` is
   x / log(2), which the caller may know before x. */
INLINE float enlarged_exp_of(float x, float rest, float powers) {
    float shifted = ROUNDING_OF_EXPONENT - powers, power = ROUNDING_OF_EXPONENT - shifted;
    float r = (power * 0x1.62ep-1f - x) + (power * 0x1.0bfbe8p-15f - rest), s = r * r; /* the first product is exact */
    float series = (0.49999994f + r * 0.166665211f) + s * ((0.0416682549f + r * 0.00836866256f) + s * 0.00138214813f);
    return (1.0f + (r + s * series)) * single_of_bits(bits_of_single(shifted) << 23);
}

INLINE float enlarged_exp(float x, float rest) { return enlarged_exp_of(x, rest, x * LOG2_E); }

/* exp(-factor x**2) times 2**64, for abs(x) whose square times the factor is at most 110. The square of the high bits is
   exact, so that no rounding of x**2 is in the exponent. */
INLINE float enlarged_gaussian(float size, float factor) {
    float high = single_of_bits(bits_of_single(size) & 0xfffff000);
    float square = high * high, rest = (size - high) * ((size + high) * factor);
    return enlarged_exp_of(square * factor, rest, square * (LOG2_E * factor));
}

INLINE float gaussian_of(float x) { return 0x1p-64f * enlarged_gaussian(up_to(fabsf(x), 10.4f), 1); }
INLINE float half_gaussian_of(float x) { return 0x1p-64f * enlarged_gaussian(up_to(fabsf(x), 14.7f), 0.5f); }

/* erf(x); error 1.3 ulps. It is 1 - 1.5e-8 at 4, which is rounded to 1. */
INLINE float erf_of(float x) {
    float size = fabsf(x), s = x * x, s2 = s * s, t = (up_to(size, 4) - 2.55f) * 0.689655172f, t2 = t * t, t4 = t2 * t2;
    float near = (0.128379166f + s * -0.376126111f) + s2 * (0.112833641f + s * -0.026843518f) + s2 * s2 * (
    (0.00516773108f + s * -0.000782473944f) + s2 * 7.23606863e-05f);
    float first = (0.000310661417f + t * -0.00245362474f) + t2 * (0.00907246862f + t * -0.0206475388f);
    float second = (0.0318101756f + t * -0.0339865349f) + t2 * (0.0240804963f + t * -0.00860194024f);
    float third = (-0.00299560465f + t * 0.00640568323f) + t2 * (-0.00342362747f + t * -0.000458945142f);
    float fourth = (0.00116025633f + t * -0.000154562586f) + t2 * -0.000117353236f;
    float rest = (first + t4 * second) + t4 * t4 * (third + t4 * fourth);
    return size < 1.1f ? x + x * near : copysignf(1 - rest, x);
}

/* The tails are Gaussians times quotients of polynomials, whose coefficients are positive: no term cancels another. They
   are the best ones of these degrees at 160 points; the errors, relative to the function, are 2e-8. */

/* erfc(x); error 6.2 ulps, and 2 at 99 % of the points. */
INLINE float erfc_of(float x) {
    float size = up_to(fabsf(x), 10.25f), square = size * size;
    float above = 1 + (size * 1.23808146f + square * ((0.731153965f + size * 0.228960752f) + square * 0.032724034f));
    float below = 1 + (size * 2.36646104f + square * ((2.40141129f + size * 1.32450879f) + square * (
    0.405848503f + size * 0.0580011532f)));
    float tail = enlarged_gaussian(size, 1) * (0x1p-64f * above / below);
    return x < 0 ? 2 - tail : tail;
}

/* The normal distribution function; error 6.4 ulps, and 2.2 at 99 % of the points. */
INLINE float ndtr_of(float x) {
    float size = up_to(fabsf(x), 14.6f), square = size * size;
    float above = 0.5f + (size * 0.437793851f + square * ((0.182837278f + size * 0.04049135f) + square * 0.00409293547f));
    float below = 1 + (size * 1.67347252f + square * ((1.20090854f + size * 0.468413323f) + square * (
    0.101503275f + size * 0.010259347f)));
    float tail = enlarged_gaussian(size, 0.5f) * (0x1p-64f * above / below);
    return x > 0 ? 1 - tail : tail;
}

/* x times it; error 7 ulps, and more below -12.9, where the distribution function is subnormal. */
INLINE float gelu_of(float x) { return x * ndtr_of(x); }

/* The logistic function, and its derivative; errors 2.4 and 4 ulps. */
INLINE float logistic_of(float x) {
    float exp = 0x1p-64f * enlarged_exp(up_to(fabsf(x), 110), 0);
    return (x < 0 ? exp : 1) / (1 + exp);
}

INLINE float logistic_slope_of(float x) {
    float exp = 0x1p-64f * enlarged_exp(up_to(fabsf(x), 110), 0), divisor = 1 + exp;
    return exp / (divisor * divisor);
}

/* Gamma functions. ------------------------------------------------------------------------------------------------- */

/* The distance of a number from 0 to 2**40 to the nearest integer, with its sign. */
INLINE double distance(double x) { return x - ((x + ROUNDING) - ROUNDING); }

/* sin(pi d) / d for a distance d; error 1e-13. */
INLINE double sine_ratio(double d) {
    double s = d * d * 8 - 1;
    return 2.534324262661598 + s * (-0.5697036803087363 + s * (0.03645310559709847 + s * (-0.0010924319966715932 + s * (
    1.8956829152338005e-05 + s * (-2.1448933131210143e-07 + s * 1.707046832686272e-09)))));
}

/* pi d / tan(pi d) for a distance d; error 1e-12. */
INLINE double cotangent_ratio(double d) {
    double s = d * d * 8 - 1;
    return 0.5504097966459816 + s * (-0.49312084886701296 + s * (-0.04943565225008407 + s * (-0.006740246710606419 + s * (
    -0.0009543089789978672 + s * (-0.0001360710510483064 + s * (-1.9430899332464207e-05 + s * (
    -2.775583376849362e-06 + s * (-3.959107738433143e-07 + s * (-5.6558413852833745e-08 + s * (
    -8.606705789767305e-09 + s * -1.229529119004423e-09))))))))));
}

/* log(gamma(x)) for x >= 0. Below 3.5 it is that of 2 + w, where abs(w) <= 1/2, with the logarithm of the factors
   between (error 1e-14 relative to the series, which is 0 where the function is); above, Stirling's formula. */
INLINE double lgamma_of_positive(double x) {
    double integer = ((x > 3 ? 3 : x) + ROUNDING) - ROUNDING, w = x - integer, s = w * 2;
    double series = 0.42278433509846713 + s * (0.16123351671208963 + s * (-0.0168380752633073 + s * (0.0025726010522421267 + s * (
    -0.0004615969390022207 + s * (9.032846108117791e-05 + s * (-1.8636782989783435e-05 + s * (
    3.981730499173954e-06 + s * (-8.716835182469294e-07 + s * (1.9440444527973305e-07 + s * (
    -4.390895115252492e-08 + s * (9.818836936746413e-09 + s * (-2.25877920418414e-09 + s * (6.584772808286177e-10 + s *
    -1.537542996541894e-10)))))))))))));
    double inverse = 1 / x;
    double factor = x >= 3.5 ? x : integer == 0 ? x * (x + 1) : integer == 1 ? x : integer == 2 ? 1 : x - 1;
    double power = x >= 3.5 ? x - 0.5 : integer == 3 ? 1 : -1;
    double near = w * series;
    s = inverse * inverse * 24.5 - 1;
    double error = 0.08322123851756084 + s * (-0.0001108473047568887 + s * (1.2129745621840864e-06 + s * (
    -3.285055513892705e-08 + s * (1.5621862339293574e-09 + s * (-1.1281273465810387e-10 + s * 1.08748523437927e-11)))));
    double sum = x >= 3.5 ? error * inverse - x + 0.9189385332046728 : near;
    double out = sum + power * log_of(factor);
    return x == 0 ? INFINITY : x > 1e300 ? x : out;
}

/* The function at -x, from its value at x. */
INLINE double lgamma_reflected(double x, double value) {
    double y = x > 0x1p40 ? 0x1p40 : x, d = distance(y);
    double out = -log_of(y * fabs(d) * sine_ratio(d) * (1 / PI)) - value;
    return d == 0 ? INFINITY : out;
}

/* The derivative of log(gamma(x)) for x >= 0. Below 3 it is that of a number from 1 to 2, where the polynomial has the
   function's zero as a factor (error 1e-13), with 1 / x or 1 / (x - 1); above, an asymptotic series. */
INLINE double digamma_of_positive(double x) {
    double near = x < 1 ? x + 1 : x > 3 ? 1 : x > 2 ? x - 1 : x, s = near * 2 - 3;
    double series = 0.9510558760318328 + s * (-0.21181371063922988 + s * (0.060135621059696616 + s * (-0.018550615453590213 + s * (
    0.005936795302256929 + s * (-0.0019350656644826953 + s * (0.0006368876968728276 + s * (
    -0.0002107546391945568 + s * (6.995226463267036e-05 + s * (-2.3237799813532605e-05 + s * (
    7.73441815192634e-06 + s * (-2.615807198375926e-06 + s * (8.714834516921678e-07 + s * (
    -2.473862120782552e-07 + s * (8.244439757790626e-08 + s * (-5.2059829414916686e-08 + s *
    1.7352429098412563e-08)))))))))))))));
    double value = ((near - 1.4616321449683622) - 9.549995429965697e-17) * series;
    double inverse = 1 / (x > 3 ? x : x > 2 ? near : x), square = inverse * inverse;
    s = square * 18 - 1;
    double error = 0.08288196653982234 + s * (-0.00044036695758528817 + s * (1.0452186195807596e-05 + s * (
    -5.04493236277328e-07 + s * (3.84369208254653e-08 + s * (-4.052719988934295e-09 + s * (5.474155858460878e-10 + s * (
    -9.971497178812435e-11 + s * 1.9698832177696553e-11)))))));
    double far = log_of(x > 3 ? x : 3) - 0.5 * inverse - square * error;
    double out = x > 3 ? far : x < 1 ? value - inverse : x > 2 ? value + inverse : value;
    return x > 1e300 ? x : out;
}

INLINE double digamma_reflected(double x, double value) {
    double y = x > 0x1p40 ? 0x1p40 : x, d = distance(y);
    double out = value + 1 / y + cotangent_ratio(d) / d;
    return d == 0 ? NAN : out;
}

/* The second derivative of log(gamma(x)) for x >= 0, in the same way; error 6e-11. */
INLINE double trigamma_of_positive(double x) {
    double near = x < 1 ? x + 1 : x > 3 ? 1 : x > 2 ? x - 1 : x, s = near * 2 - 3;
    double series = 0.9348022005446793 + s * (-0.4143983228582362 + s * (0.17613637951192548 + s * (-0.07238017714746202 + s * (
    0.028941523083977932 + s * (-0.01131746303287036 + s * (0.004345116991391823 + s * (-0.001641659719737607 + s * (
    0.0006129996394109529 + s * (-0.00022994789010053813 + s * (8.414474460194865e-05 + s * (
    -2.6004449151048694e-05 + s * (9.417372083536033e-06 + s * (-6.424846040358171e-06 + s *
    2.2849402601028076e-06)))))))))))));
    double inverse = 1 / (x > 3 ? x : x > 2 ? near : x), square = inverse * inverse;
    s = square * 18 - 1;
    double error = 0.16488319916416225 + s * (-0.0017196590836164804 + s * (5.968616975626327e-05 + s * (
    -3.7284700543375176e-06 + s * (3.437719495906299e-07 + s * (-4.201658973513583e-08 + s * (
    6.395975613986596e-09 + s * (-1.3117247799832567e-09 + s * 2.824672688327656e-10)))))));
    double far = inverse + square * (0.5 + inverse * error);
    return x > 3 ? far : x < 1 ? series + square : x > 2 ? series - square : series;
}

INLINE double trigamma_reflected(double x, double value) {
    double y = x > 0x1p40 ? 0x1p40 : x, d = distance(y), ratio = PI / (d * sine_ratio(d));
    double out = ratio * ratio - value + 1 / (y * y);
    return d == 0 ? INFINITY : out;
}

/* Modified Bessel functions of the first kind. ----------------------------------------------------------------------

   Up to 6 they are polynomials in x**2, whose terms are positive; beyond, exp(x) / sqrt(x) times polynomials in 1 / x. */

#define END_OF_NEAR 6.0

/* I0(x) and I1(x) / x for x from 0 to 6; errors 2e-13. */
INLINE double i0_near(double x) {
    double s = x * x * (1.0 / 18) - 1;
    return 13.951407154841995 + s * (25.81441650879553 + s * (18.483457844012086 + s * (
    7.0385071522655815 + s * (1.652416327126231 + s * (0.26173104741511277 + s * (0.02975324365354107 + s * (
    0.002539832603960727 + s * (0.00016853064962692882 + s * (8.933206459181424e-06 + s * (3.8795530041683517e-07 + s *
    1.3952336327841853e-08))))))))));
}

INLINE double i1_ratio_near(double x) {
    double s = x * x * (1.0 / 18) - 1;
    return 2.868268500977274 + s * (4.107435076443819 + s * (2.3461690507556243 + s * (0.734407256577813 + s * (
    0.14540613744882402 + s * (0.019835495274497073 + s * (0.001975425371488796 + s * (0.00014980629359672337 + s * (
    8.933189934060476e-06 + s * (4.296483876608121e-07 + s * (1.706020010004662e-08 + s * 5.652394088973158e-10))))))))));
}

/* I0(x) exp(-x) and I1(x) exp(-x) for x >= 6; errors 1e-9. */
INLINE double i0e_far(double x) {
    double inverse = 1 / x, s = inverse * 12 - 1;
    return sqrt(inverse) * (0.40331226110838253 + s * (0.004607090766396188 + s * (0.00026395506357139 + s * (
    3.208104604880502e-05 + s * (7.005187391958886e-06 + s * (2.672753916710779e-06 + s * (1.121735105449186e-06 + s * (
    -8.089502449354279e-09 + s * (-3.6714201476172285e-07 + s * -1.4092722534074338e-07)))))))));
}

INLINE double i1e_far(double x) {
    double inverse = 1 / x, s = inverse * 12 - 1;
    return sqrt(inverse) * (0.38612365904689483 + s * (-0.013201391657764242 + s * (-0.00041892531501174375 + s * (
    -4.258282234763304e-05 + s * (-8.462369186659247e-06 + s * (-3.0469585085805746e-06 + s * (
    -1.282705572453811e-06 + s * (-3.478014856906528e-08 + s * (3.966742496595142e-07 + s * 1.6116082861907376e-07)))))))));
}

/* Their difference, in which they would cancel; error 3e-9. */
INLINE double fall_far(double x) {
    double inverse = 1 / x, s = inverse * 12 - 1;
    return inverse * sqrt(inverse) * (0.20626322134071873 + s * (0.007438562154853943 + s * (0.0007561639276891689 + s * (
    0.00014006798187571337 + s * (4.435875088413334e-05 + s * (2.2221187287672387e-05 + s * (9.43676219416379e-06 + s * (
    -3.4842550764374874e-06 + s * (-7.721669334059296e-06 + s * (-2.236286736724931e-06 + s * (
    1.6568102955662438e-06 + s * 8.449285902265066e-07)))))))))));
}

INLINE double i0e_of(double x) {
    double size = fabs(x), near = size < END_OF_NEAR ? size : END_OF_NEAR, far = size > END_OF_NEAR ? size : END_OF_NEAR;
    double close = i0_near(near) * exp_of(-near), beyond = i0e_far(far);
    return size > END_OF_NEAR ? beyond : close;
}

/* At -0.0 it is 0.0, as SciPy's. */
INLINE double i1e_of(double x) {
    double size = fabs(x), near = size < END_OF_NEAR ? size : END_OF_NEAR, far = size > END_OF_NEAR ? size : END_OF_NEAR;
    double close = x * i1_ratio_near(near) * exp_of(-near) + 0.0, beyond = copysign(i1e_far(far), x);
    return size > END_OF_NEAR ? beyond : close;
}

/* At 100 the functions without factors exceed the numbers of single precision. */
INLINE double i0_of(double x) {
    double size = fabs(x), near = size < END_OF_NEAR ? size : END_OF_NEAR;
    double far = size > 100 ? 100 : size > END_OF_NEAR ? size : END_OF_NEAR, close = i0_near(near);
    double beyond = i0e_far(far) * exp_of(far);
    return size > END_OF_NEAR ? beyond : close;
}

INLINE double i1_of(double x) {
    double size = fabs(x), near = size < END_OF_NEAR ? size : END_OF_NEAR;
    double far = size > 100 ? 100 : size > END_OF_NEAR ? size : END_OF_NEAR, close = x * i1_ratio_near(near) + 0.0;
    double beyond = copysign(i1e_far(far) * exp_of(far), x);
    return size > END_OF_NEAR ? beyond : close;
}

/* (I0 - I1) exp(-abs(x)) at abs(x). */
INLINE double bessel_fall_of(double x) {
    double size = fabs(x), near = size < END_OF_NEAR ? size : END_OF_NEAR, far = size > END_OF_NEAR ? size : END_OF_NEAR;
    double close = (i0_near(near) - near * i1_ratio_near(near)) * exp_of(-near), beyond = fall_far(far);
    return size > END_OF_NEAR ? beyond : close;
}

/* The quantile of the normal distribution. --------------------------------------------------------------------------

   It is 2 p - 1 times a function of w = -log(4 p (1 - p)), which is from 0 to 102 for p > 0 of single precision: up to 6
   a polynomial in w, beyond sqrt(w) times a polynomial in 1 / sqrt(w); errors 2e-9. The quantiles of the fit are by
   Newton's method on the logarithm of the tail. */
INLINE double ndtri_of(double p) {
    double product = 4 * p * (1 - p), w = -log_of(product > 1e-300 ? product : 1e-300);
    double near = w < 6 ? w : 6, far = w > 104 ? 104 : w > 6 ? w : 6, root = sqrt(far), s = near * (1.0 / 3) - 1;
    double close = 2.2960351246249897 + s * (1.0251509832455803 + s * (-0.07303453775136041 + s * (
    -0.031928542687950444 + s * (0.022344523510694717 + s * (-0.004370339443549473 + s * (-0.0018020732626701753 + s * (
    0.001393158432033014 + s * (-0.0002200489033269774 + s * (-0.0001556940905447719 + s * (9.34195260375965e-05 + s * (
    -3.1069592889351114e-06 + s * (-1.4007392574882407e-05 + s * (2.681337946398364e-06 + s * 8.767507355740926e-07)))))))))))));
    s = 6.447656477807428 / root - 1.6322447345631346;
    double beyond = 1.3566859605952746 + s * (-0.04335508073448246 + s * (0.002924357885171075 + s * (
    0.0029566186706339852 + s * (-0.00039287004201785775 + s * (0.0007894258771745873 + s * (0.0007830378671502933 + s * (
    0.0002797174737492188 + s * (-0.0005143121170660583 + s * (-0.00040870663048909556 + s * (
    0.0001940472369555858 + s * (0.0002153166274565746 + s * (-4.9788559638422265e-05 + s * (
    -4.6336892764948426e-05 + s * 6.362797931862334e-06)))))))))))));
    double out = (2 * p - 1) * (w > 6 ? root * beyond : close);
    return p == 0 ? -INFINITY : p == 1 ? INFINITY : ((p > 0) & (p < 1)) ? out : NAN;
}

/* Loops. ----------------------------------------------------------------------------------------------------------- */

enum { CHUNK = 64 }; /* elements that are computed at once, so that all pass through the same instructions */

INLINE void read_chunk(float *chunk, const char *from, npy_intp stride, int n) {
    if (n == CHUNK && stride == sizeof(float)) {
        memcpy(chunk, from, CHUNK * sizeof(float));
    } else {
        for (int l = 0; l < CHUNK; l++) chunk[l] = l < n ? *(const float *)(from + l * stride) : 1;
    }
}

/* Statements for a chunk of x, at most n of whose elements count; NaN passes. */
#define SINGLE(name, statements)                                                                            \
    WIDE static void name(char **a, npy_intp const *count, npy_intp const *strides, void *data) {           \
        for (npy_intp first = 0; first < *count; first += CHUNK) {                                          \
            const int n = *count - first < CHUNK ? (int)(*count - first) : CHUNK;                           \
            float x[CHUNK], out[CHUNK];                                                                     \
            read_chunk(x, a[0] + first * strides[0], strides[0], n);                                        \
            statements                                                                                      \
            memcpy(a[1] + first * sizeof(float), out, n * sizeof(float));                                   \
        }                                                                                                   \
    }
#define OF_ALL(function)                                                                                    \
    for (int l = 0; l < CHUNK; l++) out[l] = x[l] != x[l] ? x[l] : (float)function((double)x[l]);
/* The same for a function that is computed for positive numbers first. */
#define BY_REFLECTION(function, at_zero)                                                                    \
    double values[CHUNK];                                                                                   \
    float least = 0;                                                                                        \
    for (int l = 0; l < CHUNK; l++) least = x[l] < least ? x[l] : least;                                    \
    for (int l = 0; l < CHUNK; l++) values[l] = function##_of_positive(fabs((double)x[l]));                 \
    for (int l = 0; l < CHUNK; l++)                                                                         \
        out[l] = x[l] != x[l] ? x[l] : x[l] == 0 ? (float)(at_zero) : (float)values[l];                     \
    if (least < 0) {                                                                                        \
        for (int l = 0; l < CHUNK; l++) {                                                                   \
            float reflected = (float)function##_reflected(fabs((double)x[l]), values[l]);                   \
            out[l] = x[l] < 0 ? reflected : out[l];                                                         \
        }                                                                                                   \
    }
SINGLE(erfcx_f, OF_ALL(erfcx_of))
SINGLE(log_ndtr_f, OF_ALL(log_ndtr_of))
SINGLE(normal_hazard_f, OF_ALL(normal_hazard_of))
SINGLE(lgamma_f, BY_REFLECTION(lgamma, INFINITY))
SINGLE(digamma_f, BY_REFLECTION(digamma, -1 / x[l]))
SINGLE(trigamma_f, BY_REFLECTION(trigamma, INFINITY))
SINGLE(i0_f, OF_ALL(i0_of))
SINGLE(i1_f, OF_ALL(i1_of))
SINGLE(i0e_f, OF_ALL(i0e_of))
SINGLE(i1e_f, OF_ALL(i1e_of))
SINGLE(bessel_fall_f, OF_ALL(bessel_fall_of))
SINGLE(ndtri_f, OF_ALL(ndtri_of))

/* sqrt(x**2 + y**2): the squares are exact, and do not overflow. */
WIDE static void hypot_f(char **a, npy_intp const *count, npy_intp const *strides, void *data) {
    for (npy_intp first = 0; first < *count; first += CHUNK) {
        const int n = *count - first < CHUNK ? (int)(*count - first) : CHUNK;
        float x[CHUNK], y[CHUNK], out[CHUNK];
        read_chunk(x, a[0] + first * strides[0], strides[0], n);
        read_chunk(y, a[1] + first * strides[1], strides[1], n);
        for (int l = 0; l < CHUNK; l++) {
            double p = x[l], q = y[l];
            float root = (float)sqrt(p * p + q * q);
            out[l] = ((fabsf(x[l]) == INFINITY) | (fabsf(y[l]) == INFINITY)) ? INFINITY : root;
        }
        memcpy(a[2] + first * sizeof(float), out, n * sizeof(float));
    }
}

/* The regularized lower incomplete gamma function of a and x, by its series x**a exp(-x) / gamma(a + 1) * (1 + x / (a + 1) +
   x**2 / ((a + 1) (a + 2)) + ...) (DLMF 8.11.4), whose terms are positive; NaN where a or x is not from 0 to 50. Four terms
   take one division. Each sum ends at its own last term, so that others of the chunk change no bit. */
#define MOST_OF_SERIES 50
#define LAST_TERM 0x1p-36 /* of the sum; those after it are 2**-35 together at most */
WIDE static void gammainc_f(char **args, npy_intp const *count, npy_intp const *strides, void *data) {
    for (npy_intp first = 0; first < *count; first += CHUNK) {
        const int n = *count - first < CHUNK ? (int)(*count - first) : CHUNK;
        float a[CHUNK], x[CHUNK], out[CHUNK];
        double p[CHUNK], q[CHUNK], divisor[CHUNK], term[CHUNK], sum[CHUNK];
        uint64_t left = 1; /* the bits of all last terms: the compiler makes no vectors of a loop with their largest */
        read_chunk(a, args[0] + first * strides[0], strides[0], n);
        read_chunk(x, args[1] + first * strides[1], strides[1], n);
        for (int l = 0; l < CHUNK; l++) {
            const int is_inside = (a[l] > 0) & (a[l] <= MOST_OF_SERIES) & (x[l] > 0) & (x[l] <= MOST_OF_SERIES);
            p[l] = divisor[l] = is_inside ? a[l] : 1;
            q[l] = is_inside ? x[l] : 1;
            term[l] = sum[l] = 1;
        }
        while (left) {
            left = 0;
            for (int l = 0; l < CHUNK; l++) {
                double d = divisor[l], t = term[l], s = sum[l];
                const double third = (d + 3) * (d + 4), second = (d + 2) * third, power = q[l] * q[l];
                const double ratio = t / ((d + 1) * second), four = second + q[l] * (third + q[l] * ((d + 4) + q[l]));
                d += 4;
                s += ratio * (q[l] * four);
                t = ratio * (power * power);
                t = t < LAST_TERM * s ? 0 : t;
                divisor[l] = d;
                term[l] = t;
                sum[l] = s;
                left |= bits_of(t);
            }
        }
        for (int l = 0; l < CHUNK; l++) {
            const int is_inside = (a[l] > 0) & (a[l] <= MOST_OF_SERIES) & (x[l] > 0) & (x[l] <= MOST_OF_SERIES);
            const double level = p[l] * log_of(q[l]) - q[l] - lgamma_of_positive(p[l] + 1);
            const float value = (float)(exp_of(level < -400 ? -400 : level) * sum[l]);
            out[l] = is_inside ? value : NAN;
        }
        memcpy(args[2] + first * sizeof(float), out, n * sizeof(float));
    }
}

/* The Hurwitz zeta function of s and q: four terms, and Euler and Maclaurin's formula for those after them with five of
   Bernoulli's numbers (DLMF 25.11.5); error 6e-10. It is NaN where s is not from 1 to 400, or q not from 0 to 1e30. */
INLINE double power_of_term(double base, double s) {
    double level = -s * log_of(base);
    return exp_of(level < -400 ? -400 : level > 400 ? 400 : level);
}

INLINE double zeta_of(double s, double q) {
    double a = q + 4, inverse = 1 / a, square = inverse * inverse;
    double series = (s + 5) * (s + 6) * square * (-1.0 / 1209600 + (s + 7) * (s + 8) * square * (1.0 / 47900160));
    series = (s + 1) * (s + 2) * square * (-1.0 / 720 + (s + 3) * (s + 4) * square * (1.0 / 30240 + series));
    double rest = power_of_term(a, s) * (a / (s - 1) + 0.5 + s * inverse * (1.0 / 12 + series));
    double later = power_of_term(q + 2, s) + power_of_term(q + 3, s);
    return power_of_term(q, s) + (power_of_term(q + 1, s) + (later + rest));
}

WIDE static void zeta_f(char **args, npy_intp const *count, npy_intp const *strides, void *data) {
    for (npy_intp first = 0; first < *count; first += CHUNK) {
        const int n = *count - first < CHUNK ? (int)(*count - first) : CHUNK;
        float s[CHUNK], q[CHUNK], out[CHUNK];
        read_chunk(s, args[0] + first * strides[0], strides[0], n);
        read_chunk(q, args[1] + first * strides[1], strides[1], n);
        for (int l = 0; l < CHUNK; l++) {
            const int is_inside = (s[l] > 1) & (s[l] <= 400) & (q[l] > 0) & (q[l] <= 1e30f);
            const float value = (float)zeta_of(is_inside ? s[l] : 2, is_inside ? q[l] : 1);
            out[l] = is_inside ? value : NAN;
        }
        memcpy(args[2] + first * sizeof(float), out, n * sizeof(float));
    }
}

UNARY(erf_f, float, float, erf_of(x))
UNARY(erfc_f, float, float, erfc_of(x))
UNARY(ndtr_f, float, float, ndtr_of(x))
UNARY(gelu_f, float, float, gelu_of(x))
UNARY(gaussian_f, float, float, gaussian_of(x))
UNARY(half_gaussian_f, float, float, half_gaussian_of(x))
UNARY(logistic_f, float, float, logistic_of(x))
UNARY(logistic_slope_f, float, float, logistic_slope_of(x))

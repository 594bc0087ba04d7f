/* Arithmetic on some rows at once, whose operands may be rows that are repeated, or one number for each row. NumPy's
   loops compute the same bits a row at a time: on 50 numbers a call of one takes longer than to compute them. */

typedef void Plane(char **arguments, npy_intp rows, npy_intp columns, const npy_intp *outer, const npy_intp *inner);

static char planes;
#define PLANES ((void *)&planes) /* the data of such a loop */

/* The strides are those from a row to the next, and from an element to the next; results are side by side in a row. */
#define ARITHMETIC(name, type, operation)                                                                   \
    WIDE static void name(char **a, npy_intp rows, npy_intp columns, const npy_intp *outer, const npy_intp *inner) { \
        const npy_intp item = sizeof(type);                                                                 \
        for (npy_intp r = 0; r < rows; r++) {                                                               \
            const char *s = a[0] + r * outer[0], *t = a[1] + r * outer[1];                                  \
            const type *p = (const type *)s, *q = (const type *)t;                                          \
            type *out = (type *)(a[2] + r * outer[2]);                                                      \
            if (inner[0] == item && inner[1] == item) {                                                     \
                EACH(i, columns) out[i] = p[i] operation q[i];                                              \
            } else if (inner[0] == item && inner[1] == 0) {                                                 \
                const type y = *q;                                                                          \
                EACH(i, columns) out[i] = p[i] operation y;                                                 \
            } else if (inner[0] == 0 && inner[1] == item) {                                                 \
                const type x = *p;                                                                          \
                EACH(i, columns) out[i] = x operation q[i];                                                 \
            } else {                                                                                        \
                EACH(i, columns)                                                                            \
                    out[i] = *(const type *)(s + i * inner[0]) operation *(const type *)(t + i * inner[1]); \
            }                                                                                               \
        }                                                                                                   \
    }
#define ARITHMETICS(suffix, type)                                                                           \
    ARITHMETIC(plane_add_##suffix, type, +)                                                                 \
    ARITHMETIC(plane_subtract_##suffix, type, -)                                                            \
    ARITHMETIC(plane_multiply_##suffix, type, *)                                                            \
    ARITHMETIC(plane_divide_##suffix, type, /)
ARITHMETICS(f, float)
ARITHMETICS(d, double)

#define PLANE_NAMES(suffix)                                                                                 \
    {"plane add " #suffix, plane_add_##suffix, PLANES}, {"plane subtract " #suffix, plane_subtract_##suffix, PLANES}, \
        {"plane multiply " #suffix, plane_multiply_##suffix, PLANES},                                       \
        {"plane divide " #suffix, plane_divide_##suffix, PLANES}

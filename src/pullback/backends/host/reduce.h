/* Reductions of pieces of the rows, or of the columns, of a block.

   An element of the result is the reduction of a piece. A piece of a row is reduced by parts of 512 elements, and the
   results of parts in the same way. A part has as many chains as there are LANES, in whatever width the processor has
   vectors, and the chains are combined in halves. So the bits depend on the number of elements alone. */

typedef struct {
    const char *data; /* elements of a row are side by side */
    npy_intp stride;  /* from a row to the next */
} Rows;

/* Reduces each piece of each row of a block to one element, or each piece of each column. The last operand is the
   result; there are two before it if their product is reduced. If the first piece of columns has `begun`, the result has the
   reduction of its rows before. */
typedef void Reduction(const Rows *operands, npy_intp rows, npy_intp columns, npy_intp piece, int begun);

enum {
    LANES = 32,
    PART = 512,            /* elements */
    MOST_PARTS = 512,
    LARGEST_PIECE = PART * MOST_PARTS, /* of a row */
    AT_ONCE = 4,           /* rows whose elements are added to those of a column */
    UNSEEN = 2,            /* the mark of a chain without NaN; others are odd */
};

/* Reduce one part. `term(i)` is one of its elements, and `neutral` changes no result. `combined`, of a and b, loses a if
   that is NaN, for some reductions: then `kept`, of a and c, is the right one, and `mark(l, b)` remembers in `odd[l]` that
   b is NaN, so that the part's result is its first NaN.

   Chains begin with `neutral`, and marks with a number that is no byte repeated: compilers make calls or string
   instructions of loops that copy, or set bytes, which took as long as the sum of a part. */
#define PART_OF(name, type, flag, term, start, neutral, combined, kept, mark)                            \
    INLINE type name(const type *restrict x, const type *restrict y, npy_intp n) {                          \
        type lanes[LANES], a, b, c;                                                                          \
        flag odd[LANES];                                                                                    \
        npy_intp i;                                                                                         \
        (void)y;                                                                                            \
        if (n < LANES) {                                                                                    \
            a = start;                                                                                      \
            for (i = 0; i < n; i++) { b = term(i); c = combined; a = kept; }                                           \
            return a;                                                                                       \
        }                                                                                                   \
        for (int l = 0; l < LANES; l++) { lanes[l] = neutral; odd[l] = UNSEEN; }                            \
        ROLLED for (i = 0; i + LANES <= n; i += LANES)                                                      \
            for (int l = 0; l < LANES; l++) { a = lanes[l]; b = term(i + l); lanes[l] = combined; mark(l, b); } \
        const int rest = (int)(n - i);                                                                      \
        if (rest) {                                                                                         \
            ROLLED for (int l = 0; l < LANES; l++) { a = lanes[l]; b = l < rest ? term(i + l) : neutral; lanes[l] = combined; mark(l, b); } \
        }                                                                                                   \
        ROLLED HALF(16, combined) ROLLED HALF(8, combined) ROLLED HALF(4, combined) HALF(2, combined) HALF(1, combined) \
        flag any = 0;                                                                                       \
        for (int l = 0; l < LANES; l++) any |= odd[l] & 1;                                                  \
        for (i = 0; any && i < n; i++) { b = term(i); if (b != b) return b; }                               \
        return lanes[0];                                                                                    \
    }
#define HALF(half, combined)                                                                                \
    for (int l = 0; l < half; l++) { a = lanes[l]; b = lanes[l + half]; lanes[l] = combined; }
#define ELEMENT(i) x[i]
#define PRODUCT(i) x[i] * y[i]
#define MARKED(l, b) odd[l] |= b != b
#define UNMARKED(l, b) (void)b

#define OF_ROWS(name, type, part, of_parts, arity)                                                          \
    WIDE static void name(const Rows *operands, npy_intp rows, npy_intp columns, npy_intp piece, int begun) { \
        (void)begun;                                                                                        \
        for (npy_intp r = 0; r < rows; r++) {                                                               \
            const type *x = (const type *)(operands[0].data + r * operands[0].stride);                      \
            const type *y = (const type *)(operands[arity - 1].data + r * operands[arity - 1].stride);      \
            type *out = (type *)(operands[arity].data + r * operands[arity].stride), parts[MOST_PARTS];     \
            for (npy_intp first = 0; first < columns; first += piece) {                                     \
                const npy_intp n = columns - first < piece ? columns - first : piece;                       \
                npy_intp count = 0;                                                                         \
                for (npy_intp i = first; i < first + n; i += PART)                                          \
                    parts[count++] = part(x + i, y + i, first + n - i < PART ? first + n - i : PART);       \
                *out++ = count == 1 ? parts[0] : of_parts(parts, parts, count);                             \
            }                                                                                               \
        }                                                                                                   \
    }

/* A piece of a column is reduced from its first element to its last, and a row of them at once. */
#define OF_COLUMNS(name, type, combined, kept)                                                                    \
    WIDE static void name(const Rows *operands, npy_intp rows, npy_intp columns, npy_intp piece, int begun) { \
        const npy_intp stride = operands[0].stride;                                                         \
        for (npy_intp first = 0; first < rows; first += piece, begun = 0) {                                 \
            const npy_intp end = rows - first < piece ? rows : first + piece;                               \
            const char *row = operands[0].data + first * stride;                                            \
            type *restrict out = (type *)(operands[1].data + first / piece * operands[1].stride);           \
            npy_intp r = first;                                                                             \
            if (!begun) {                                                                                   \
                memcpy(out, row, columns * sizeof(type));                                                   \
                r++;                                                                                        \
                row += stride;                                                                              \
            }                                                                                               \
            for (; r + AT_ONCE <= end; r += AT_ONCE, row += AT_ONCE * stride) {                \
                const type *restrict p = (const type *)row, *restrict q = (const type *)(row + stride);     \
                const type *restrict s = (const type *)(row + 2 * stride), *restrict t = (const type *)(row + 3 * stride); \
                for (npy_intp i = 0; i < columns; i++) {                                                    \
                    type a = out[i], b = p[i], c = combined;                                                \
                    a = kept; b = q[i]; c = combined;                                                       \
                    a = kept; b = s[i]; c = combined;                                                       \
                    a = kept; b = t[i]; c = combined;                                                       \
                    out[i] = kept;                                                                          \
                }                                                                                           \
            }                                                                                               \
            for (; r < end; r++, row += stride) {                                                           \
                const type *restrict p = (const type *)row;                                                 \
                for (npy_intp i = 0; i < columns; i++) { const type a = out[i], b = p[i], c = combined; out[i] = kept; }\
            }                                                                                               \
        }                                                                                                   \
    }

#define REDUCTIONS(name, suffix, type, flag, start, neutral, combined, kept, mark)                          \
    PART_OF(name##_part_##suffix, type, flag, ELEMENT, start, neutral, combined, kept, mark)                \
    OF_ROWS(name##_##suffix, type, name##_part_##suffix, name##_part_##suffix, 1)                           \
    OF_COLUMNS(stacked_##name##_##suffix, type, combined, kept)
#define FLOAT_REDUCTIONS(suffix, type, flag)                                                                \
    REDUCTIONS(sum, suffix, type, flag, 0, (type)-0.0, a + b, c, UNMARKED)                                  \
    REDUCTIONS(product, suffix, type, flag, 1, 1, a * b, c, UNMARKED)                                       \
    REDUCTIONS(largest, suffix, type, flag, -INFINITY, -INFINITY, a > b ? a : b, a != a ? a : c, MARKED)    \
    REDUCTIONS(least, suffix, type, flag, INFINITY, INFINITY, a < b ? a : b, a != a ? a : c, MARKED)        \
    PART_OF(dot_part_##suffix, type, flag, PRODUCT, 0, (type)-0.0, a + b, c, UNMARKED)                      \
    OF_ROWS(dot_##suffix, type, dot_part_##suffix, sum_part_##suffix, 2)
FLOAT_REDUCTIONS(f, float, int32_t)
FLOAT_REDUCTIONS(d, double, int64_t)

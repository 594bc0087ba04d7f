"""Dtypes: kinds, names, canonical forms, and promotion against tables recorded from JAX 0.10.2."""

import enum
import itertools
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import pullback.dtypes
import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.config import enable_x64, override
from pullback.core.errors import DtypeError, OperandError, TypePromotionError

_NAMES = (
    "bool int2 uint2 int4 uint4 uint8 uint16 uint32 uint64 int8 int16 int32 int64 "
    "bfloat16 float16 float32 float64 complex64 complex128 "
    "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz "
    "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
)
NAMES = _NAMES.split()
CODES = dict(zip("?2345BHLQbhlqgefdzZmnoprstuvwx", NAMES, strict=True))
WEAK = {"I": int, "F": float, "C": complex}

# A row and a column for each of NAMES, then for Python's int, float and complex; a letter for the dtype of
# the operation on the two (capital I, F and C: weak), a dot where they have none.
NARROW = """
    ?2345BHLLbhllgeffzzmnoprstuvwxIFC
    22............................2..
    3.3...........................3..
    4..4..........................4..
    5...5.........................5..
    B....BHLLhhllgeffzzmnoprstuvwxBFC
    H....HHLLllllgeffzzmnoprstuvwxHFC
    L....LLLLllllgeffzzmnoprstuvwxLFC
    L....LLLLllllgeffzzmnoprstuvwxLFC
    b....hlllbhllgeffzzmnoprstuvwxbFC
    h....hlllhhllgeffzzmnoprstuvwxhFC
    l....llllllllgeffzzmnoprstuvwxlFC
    l....llllllllgeffzzmnoprstuvwxlFC
    g....gggggggggfffzz...........ggz
    e....eeeeeeeefeffzz...........eez
    f....ffffffffffffzz...........ffz
    f....ffffffffffffzz...........ffz
    z....zzzzzzzzzzzzzz...........zzz
    z....zzzzzzzzzzzzzz...........zzz
    m....mmmmmmmm......m..........mm.
    n....nnnnnnnn.......n.........nn.
    o....oooooooo........o........oo.
    p....pppppppp.........p.......pp.
    r....rrrrrrrr..........r......rr.
    s....ssssssss...........s.....ss.
    t....tttttttt............t....tt.
    u....uuuuuuuu.............u...uu.
    v....vvvvvvvv..............v..vv.
    w....wwwwwwww...............w.ww.
    x....xxxxxxxx................xxx.
    I2345BHLLbhllgeffzzmnoprstuvwxIFC
    F....FFFFFFFFgeffzzmnoprstuvwxFFC
    C....CCCCCCCCzzzzzz...........CCC
"""
WIDE = """
    ?2345BHLQbhlqgefdzZmnoprstuvwxIFC
    22............................2..
    3.3...........................3..
    4..4..........................4..
    5...5.........................5..
    B....BHLQhhlqgefdzZmnoprstuvwxBFC
    H....HHLQlllqgefdzZmnoprstuvwxHFC
    L....LLLQqqqqgefdzZmnoprstuvwxLFC
    Q....QQQQFFFFgefdzZmnoprstuvwxQFC
    b....hlqFbhlqgefdzZmnoprstuvwxbFC
    h....hlqFhhlqgefdzZmnoprstuvwxhFC
    l....llqFlllqgefdzZmnoprstuvwxlFC
    q....qqqFqqqqgefdzZmnoprstuvwxqFC
    g....gggggggggffdzZ...........ggz
    e....eeeeeeeefefdzZ...........eez
    f....fffffffffffdzZ...........ffz
    d....ddddddddddddZZ...........ddZ
    z....zzzzzzzzzzzZzZ...........zzz
    Z....ZZZZZZZZZZZZZZ...........ZZZ
    m....mmmmmmmm......m..........mm.
    n....nnnnnnnn.......n.........nn.
    o....oooooooo........o........oo.
    p....pppppppp.........p.......pp.
    r....rrrrrrrr..........r......rr.
    s....ssssssss...........s.....ss.
    t....tttttttt............t....tt.
    u....uuuuuuuu.............u...uu.
    v....vvvvvvvv..............v..vv.
    w....wwwwwwww...............w.ww.
    x....xxxxxxxx................xxx.
    I2345BHLQbhlqgefdzZmnoprstuvwxIFC
    F....FFFFFFFFgefdzZmnoprstuvwxFFC
    C....CCCCCCCCzzzZzZ...........CCC
"""


def dtype_named(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def table(text):
    operands = [dtype_named(name) for name in NAMES] + list(WEAK.values())
    for a, row in zip(operands, text.split(), strict=True):
        for b, code in zip(operands, row, strict=True):
            yield a, b, code


def expected(code, x64):
    """The dtype and weakness that a letter means."""
    if code in WEAK:
        return dtypes._canonicalize(WEAK[code], x64), True
    return dtype_named(CODES[code]), False


@pytest.mark.parametrize(("text", "x64"), [(NARROW, False), (WIDE, True)], ids=["x32", "x64"])
def test_promotion_is_that_of_the_recorded_lattice(text, x64):
    with enable_x64(x64):
        for a, b, code in table(text):
            if code == ".":
                with pytest.raises(TypePromotionError, match="have no common dtype"):
                    dtypes.result_type(a, b)
                with pytest.raises(TypePromotionError):
                    dtypes.promote_types(a, b)
            else:
                assert dtypes.result_type(a, b, return_weak_type_flag=True) == expected(code, x64), (a, b)
                assert dtypes.promote_types(a, b) == expected(code, x64)[0], (a, b)


@pytest.mark.parametrize(("text", "x64"), [(NARROW, False), (WIDE, True)], ids=["x32", "x64"])
def test_strict_promotion_admits_python_numbers_only(text, x64):
    def admitted(a, b):
        if isinstance(a, type) and isinstance(b, type):
            return True
        if isinstance(b, type):
            a, b = b, a
        if isinstance(a, type):
            return dtypes._kind(b) in {int: "iufc", float: "fc", complex: "c"}[a]
        return dtypes.canonicalize_dtype(a) == dtypes.canonicalize_dtype(b)

    with enable_x64(x64), override("numpy_dtype_promotion", "strict"):
        for a, b, code in table(text):
            if admitted(a, b):
                assert dtypes.result_type(a, b, return_weak_type_flag=True) == expected(code, x64), (a, b)
            else:
                with pytest.raises(TypePromotionError, match=r"strict|promoted implicitly"):
                    dtypes.result_type(a, b)


def test_promotion_of_many_is_that_of_pairs_in_any_order():
    strong = [np.dtype(name) for name in ("int8", "uint8", "float16")] + [dtype_named("bfloat16")]
    for operands in itertools.permutations(strong):
        assert dtypes.result_type(*operands) == np.dtype("float32")
    assert dtypes.result_type("int8", "uint8", 1.0, return_weak_type_flag=True) == (np.dtype("float32"), True)
    assert dtypes.result_type("float16", 2j) == np.dtype("complex64")


def test_weak_operands_among_themselves():
    class Value:
        shape = ()
        weak_type = True

        def __init__(self, dtype):
            self.dtype = np.dtype(dtype)

    half, single, byte = Value("float16"), Value("float32"), Value("int8")
    assert dtypes.result_type(half, half, return_weak_type_flag=True) == (np.dtype("float16"), True)
    assert dtypes.result_type(half, single, return_weak_type_flag=True) == (np.dtype("float32"), True)
    assert dtypes.result_type(half, 1, return_weak_type_flag=True) == (np.dtype("float16"), True)
    assert dtypes.result_type(half, np.int32(1), return_weak_type_flag=True) == (np.dtype("float32"), True)
    assert dtypes.result_type(byte, np.bool_(1), return_weak_type_flag=True) == (np.dtype("int32"), True)
    assert dtypes.result_type(True, 1, return_weak_type_flag=True) == (np.dtype("int32"), True)
    assert dtypes.result_type(True, True, return_weak_type_flag=True) == (np.dtype("bool"), False)


def test_promotion_errors_name_the_types_and_the_way_out():
    with pytest.raises(TypePromotionError, match=r"float32, float8_e4m3fn have no common dtype.*astype"):
        dtypes.promote_types("float8_e4m3fn", "float32")
    with pytest.raises(TypePromotionError, match=r"int4, int8 .*not promoted implicitly"):
        dtypes.promote_types("int4", "int8")
    with (
        override("numpy_dtype_promotion", "strict"),
        pytest.raises(TypePromotionError, match=r"float32, int32 .*'strict'"),
    ):
        dtypes.promote_types("int32", "float32")
    with pytest.raises(TypePromotionError, match="float0 is not a dtype of numbers"):
        dtypes.promote_types(dtypes.float0, "float32")
    with pytest.raises(TypePromotionError, match="key<fry> is not a dtype of numbers"):
        dtypes.promote_types(dtypes.key_dtype, int)
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type()
    assert dtypes.result_type(dtypes.float0, dtypes.float0) == dtypes.float0
    assert dtypes.result_type(dtypes.key_dtype) == dtypes.key_dtype


@pytest.mark.parametrize(
    ("given", "narrow", "wide"),
    [
        (float, "float32", "float64"),
        (int, "int32", "int64"),
        (complex, "complex64", "complex128"),
        (bool, "bool", "bool"),
        (None, "float32", "float64"),
        ("float64", "float32", "float64"),
        ("f8", "float32", "float64"),
        ("u8", "uint32", "uint64"),
        (np.uint64, "uint32", "uint64"),
        (np.dtype("complex128"), "complex64", "complex128"),
        (np.dtype("longlong"), "int32", "int64"),
        (np.dtype(">f4"), "float32", "float32"),
        (np.dtype(">i8"), "int32", "int64"),
        (np.int8, "int8", "int8"),
        ("bfloat16", "bfloat16", "bfloat16"),
        (ml_dtypes.float8_e5m2, "float8_e5m2", "float8_e5m2"),
        ("int4", "int4", "int4"),
    ],
)
def test_canonical_dtypes(given, narrow, wide):
    for x64, name in ((False, narrow), (True, wide)):
        with enable_x64(x64):
            canonical = dtypes.canonicalize_dtype(given)
            assert canonical == dtype_named(name)
            assert canonical.isnative
            assert canonical is dtypes.canonicalize_dtype(given)


def test_scalar_type_objects_and_special_dtypes_are_understood():
    class ScalarType:
        dtype = np.dtype("float64")

    assert dtypes.canonicalize_dtype(ScalarType()) == np.dtype("float32")
    assert dtypes.canonicalize_dtype(ScalarType) == np.dtype("float32")
    assert dtypes.result_type(ScalarType(), 1) == np.dtype("float32")
    assert dtypes.canonicalize_dtype(dtypes.float0) == dtypes.float0
    assert dtypes.canonicalize_dtype(dtypes.key_dtype) == dtypes.key_dtype
    assert dtypes.canonicalize_dtype(dtypes.prng_key) == dtypes.key_dtype


@pytest.mark.parametrize(
    "given",
    [
        "float33",
        "S4",
        str,
        object,
        "datetime64[s]",
        "timedelta64",
        "longdouble",
        np.dtype([("a", "f4")]),
        [("a", "f4")],
        "V4",
        np.floating,
        np.number,
        3,
        {},
        print,
    ],
)
def test_other_dtypes_are_refused(given):
    with pytest.raises(DtypeError, match="dtype"):
        dtypes.canonicalize_dtype(given)


def test_the_message_of_a_refused_dtype_quotes_it():
    with pytest.raises(TypeError, match=r"unknown dtype 'float33'; the dtypes are bool, int8"):
        dtypes.canonicalize_dtype("float33")
    with pytest.raises(TypeError, match=r"dtype 'S4' is not supported"):
        dtypes.canonicalize_dtype("S4")
    with pytest.raises(TypeError, match=r"floating is a kind of dtypes"):
        dtypes.canonicalize_dtype(np.floating)


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "dtype", "weak"),
    [
        (True, "bool", False),
        (1, "int32", True),
        (1.0, "float32", True),
        (1j, "complex64", True),
        (np.float64(1), "float32", False),
        (np.bool_(1), "bool", False),
        (np.ones(2), "float32", False),
        (np.ones(2, ">i8"), "int32", False),
        (np.ones(2, ml_dtypes.bfloat16), "bfloat16", False),
        (Colour.RED, "int32", True),
    ],
)
def test_dtypes_of_values(value, dtype, weak):
    assert dtypes.dtype_and_weak(value) == (dtype_named(dtype), weak)
    assert dtypes.dtype_of(value) == dtype_named(dtype)
    assert dtypes.result_type(value, return_weak_type_flag=True) == (dtype_named(dtype), weak)


def test_values_that_carry_their_own_dtype_keep_it():
    class Value:
        dtype = np.dtype("float64")

    class WeakValue(Value):
        weak_type = True

    assert dtypes.dtype_and_weak(Value()) == (np.dtype("float64"), False)
    assert dtypes.dtype_and_weak(WeakValue()) == (np.dtype("float64"), True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("abc", "expected an array or a number, got 'abc' of type str"),
        (None, "got None of type NoneType"),
        ([1, 2], r"got \[1, 2\] of type list"),
        (np.array(["a"]), "is not an array of numbers: its dtype is <U1"),
        (np.array([None]), "is not an array of numbers: its dtype is object"),
        (np.datetime64("2020-01-01"), "its dtype is datetime64"),
        ("x" * 100, r"xxx\.\.\. of type str"),
    ],
)
def test_values_that_are_no_numbers_are_refused(value, message):
    with pytest.raises(OperandError, match=message):
        dtypes.dtype_and_weak(value)


SHORT_NAMES = (
    "bool i2 u2 i4 u4 u8 u16 u32 u64 i8 i16 i32 i64 bf16 f16 f32 f64 c64 c128 f4_e2m1fn f6_e2m3fn "
    "f6_e3m2fn f8_e3m4 f8_e4m3 f8_e4m3b11fnuz f8_e4m3fn f8_e4m3fnuz f8_e5m2 f8_e5m2fnuz f8_e8m0fnu"
)


def test_kinds_and_short_names():
    for name, short in zip(NAMES, SHORT_NAMES.split(), strict=True):
        dtype = dtype_named(name)
        is_float = "float" in name
        is_integer = "int" in name
        is_complex = name.startswith("complex")
        assert dtypes.short_name(dtype) == short
        assert dtypes.dtype_name(dtype) == name
        assert dtypes.is_float(dtype) is is_float
        assert dtypes.is_integer(dtype) is is_integer
        assert dtypes.is_complex(dtype) is is_complex
        assert dtypes.is_bool(dtype) is (name == "bool")
        assert dtypes.is_inexact(dtype) is (is_float or is_complex)
        assert dtypes.tangent_dtype(dtype) == (dtype if is_float or is_complex else dtypes.float0)
        assert getattr(dtypes, name, dtype.type) is dtype.type
    for special, short in ((dtypes.float0, "float0"), (dtypes.key_dtype, "key<fry>")):
        assert dtypes.short_name(special) == dtypes.dtype_name(special) == short
        assert not dtypes.is_inexact(special)
        assert not dtypes.is_integer(special)
        assert not dtypes.is_bool(special)
        assert dtypes.tangent_dtype(special) == dtypes.float0
    assert dtypes.is_float(np.float32)
    with pytest.raises(AttributeError, match="no attribute 'float9'"):
        dtypes.float9  # noqa: B018


@pytest.mark.parametrize("x64", [False, True])
def test_defaults_follow_the_switch(x64):
    with enable_x64(x64):
        assert dtypes.default_float() == np.dtype("float64" if x64 else "float32")
        assert dtypes.default_int() == np.dtype("int64" if x64 else "int32")
        assert dtypes.scalar_dtype(bool) == np.dtype("bool")


@pytest.mark.parametrize(
    ("name", "inexact", "cplx", "real"),
    [
        ("bool", "float32", "complex64", "bool"),
        ("int4", "float32", "complex64", "int4"),
        ("int32", "float32", "complex64", "int32"),
        ("int64", "float64", "complex128", "int64"),
        ("uint64", "float64", "complex128", "uint64"),
        ("bfloat16", "bfloat16", "complex64", "bfloat16"),
        ("float16", "float16", "complex64", "float16"),
        ("float64", "float64", "complex128", "float64"),
        ("complex64", "complex64", "complex64", "float32"),
        ("complex128", "complex128", "complex128", "float64"),
        ("float8_e5m2", "float8_e5m2", "complex64", "float8_e5m2"),
    ],
)
def test_related_dtypes(name, inexact, cplx, real):
    dtype = dtype_named(name)
    with enable_x64():
        assert dtypes.to_inexact(dtype) == dtype_named(inexact)
        assert dtypes.to_complex(dtype) == np.dtype(cplx)
        assert dtypes.to_real(dtype) == dtype_named(real)
    assert dtypes.to_inexact(np.dtype("int64")) == np.dtype("float32")
    with pytest.raises(DtypeError, match="expected a dtype of numbers, got key<fry>"):
        dtypes.to_inexact(dtypes.key_dtype)


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        (float, np.floating, True),
        ("float64", float, True),
        ("float32", "float", False),
        ("bfloat16", np.floating, True),
        ("bfloat16", np.inexact, True),
        ("bfloat16", np.generic, True),
        ("bfloat16", "bfloat16", True),
        ("bfloat16", "float32", False),
        ("bfloat16", np.integer, False),
        ("float8_e5m2", np.floating, True),
        ("int4", np.signedinteger, True),
        ("uint4", np.unsignedinteger, True),
        ("uint4", np.signedinteger, False),
        (np.floating, np.number, True),
        (np.int32, np.int32, True),
        (dtypes.float0, np.void, True),
        (dtypes.key_dtype, dtypes.prng_key, True),
        (dtypes.key_dtype, dtypes.extended, True),
        (dtypes.key_dtype, np.number, False),
        (dtypes.prng_key, dtypes.extended, True),
        (dtypes.extended, np.generic, True),
        ("float32", dtypes.prng_key, False),
    ],
)
def test_issubdtype(a, b, answer):
    assert dtypes.issubdtype(a, b) is answer


def test_issubdtype_refuses_what_is_no_dtype():
    with pytest.raises(DtypeError, match="unknown dtype 'foo'"):
        dtypes.issubdtype("foo", np.floating)
    with pytest.raises(DtypeError, match="unknown dtype 3"):
        dtypes.issubdtype(3, np.floating)


def test_isdtype():
    assert dtypes.isdtype("bfloat16", "real floating")
    assert dtypes.isdtype("int4", ("bool", "integral"))
    assert dtypes.isdtype("uint8", "unsigned integer")
    assert not dtypes.isdtype("bool", "numeric")
    assert dtypes.isdtype("float32", np.float32)
    assert not dtypes.isdtype(dtypes.key_dtype, "numeric")
    with pytest.raises(ValueError, match="no kind or dtype 'foo'; the kinds are bool, signed integer"):
        dtypes.isdtype("float32", "foo")


def test_limits():
    assert dtypes.finfo("complex64").dtype == np.dtype("float32")
    assert float(dtypes.finfo("bfloat16").eps) == 2.0**-7
    assert float(dtypes.finfo("float8_e4m3fn").max) == 448.0
    assert float(dtypes.finfo("float8_e5m2").max) == 57344.0
    assert (dtypes.iinfo("int4").min, dtypes.iinfo("uint8").max) == (-8, 255)
    widths = [dtypes.itemsize_bits(name) for name in ("bool", "int4", "bfloat16", "complex64")]
    assert widths == [8, 4, 16, 64]
    with pytest.raises(DtypeError, match="finfo takes a floating-point or complex dtype, got 'int32'"):
        dtypes.finfo("int32")
    with pytest.raises(DtypeError, match="iinfo takes an integer dtype, got 'float8_e5m2'"):
        dtypes.iinfo("float8_e5m2")


def test_scalar_types():
    values = (True, np.uint8(1), np.ones(2, ml_dtypes.bfloat16), 1j)
    assert [dtypes.scalar_type_of(x) for x in values] == [bool, int, float, complex]
    with pytest.raises(OperandError, match="not an array of numbers"):
        dtypes.scalar_type_of(np.zeros(2, dtypes.float0))


def test_the_face_has_its_names():
    for name in pullback.dtypes.__all__:
        assert getattr(pullback.dtypes, name) is not None
    assert pullback.dtypes.bfloat16 is ml_dtypes.bfloat16
    with pytest.raises(AttributeError, match="no attribute 'foo'"):
        pullback.dtypes.foo  # noqa: B018


@pytest.mark.parametrize("name", ["bool_", "int8", "int32", "uint16", "bfloat16", "float16", "float32", "complex64"])
def test_a_scalar_type_hashes_as_the_type_of_numpy_that_it_equals(name):
    ours, theirs = getattr(pnp, name), np.dtype(getattr(pnp, name)).type
    assert ours == theirs
    assert theirs == ours
    assert {theirs: 1}[ours] == {ours: 1}[theirs] == 1
    assert ours == np.dtype(theirs)
    assert ours != name  # a name has another hash, and is not equal to NumPy's types either


def test_the_integers_that_hold_two_others():
    """For each pair the narrowest that holds both ranges; none in 64 bits for signed and unsigned ones."""
    names = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    with enable_x64():
        for a, b in itertools.product(names, repeat=2):
            expected = np.promote_types(a, b)
            assert dtypes.integer_for(np.dtype(a), np.dtype(b)) == (expected if expected.kind in "iu" else None)


def test_names_of_small_types_are_numpys_after_the_import() -> None:
    """As where JAX is imported: programs read such names from files."""
    code = """
import numpy as np, pullback
assert np.dtype("bfloat16").itemsize == 2
import ml_dtypes, pullback.numpy as jnp
assert np.dtype("bfloat16") == ml_dtypes.bfloat16 and np.dtype("int4") == ml_dtypes.int4
assert np.sctypeDict["float8_e4m3fn"] is ml_dtypes.float8_e4m3fn
assert jnp.asarray(np.ones(2, "bfloat16")).dtype == jnp.bfloat16
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

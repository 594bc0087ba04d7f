"""Arrays to pandas, polars, pyarrow and xarray, and back. Without one of these libraries its tests skip."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import grad, jit
from pullback.errors import DtypeError, MissingLibraryError, OperandError, ShapeError, TracerArrayConversionError

X = jnp.arange(3.0)
M = jnp.arange(6.0).reshape(3, 2)


# pandas --------------------------------------------------------------------------------------------------------------


def test_pandas_takes_arrays() -> None:
    pd: Any = pytest.importorskip("pandas")
    series = pd.Series(X, name="a")
    assert series.dtype == np.float32
    assert series.tolist() == [0.0, 1.0, 2.0]
    frame = pd.DataFrame({"a": X, "b": jnp.arange(3)})
    assert [str(t) for t in frame.dtypes] == ["float32", "int32"]
    assert pd.DataFrame(M, columns=["a", "b"])["b"].tolist() == [1.0, 3.0, 5.0]
    assert pd.Index(jnp.arange(3)).tolist() == [0, 1, 2]
    assert (series * X).tolist() == (X * series).tolist() == [0.0, 1.0, 4.0]


def test_arrays_of_pandas_columns() -> None:
    pd: Any = pytest.importorskip("pandas")
    assert jnp.asarray(pd.Series([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert jnp.asarray(pd.DataFrame({"a": [1, 2], "b": [3.5, 4.0]})).tolist() == [[1, 3.5], [2, 4]]
    assert jnp.asarray(pd.Series([1, 2], dtype="Int64")).dtype == jnp.int32
    np.testing.assert_array_equal(jnp.asarray(pd.Series([1, None], dtype="Int64")), [1.0, np.nan])
    assert float(jit(jnp.sum)(pd.Series([1.0, 2.0]))) == 3.0
    assert grad(jnp.sum)(jnp.asarray(pd.Series([1.0, 2.0]))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (lambda pd: pd.Series(pd.to_datetime(["2020-01-01"])), r"datetime64\[\w+\] is not supported.*seconds from a s"),
        (lambda pd: pd.Series(pd.to_timedelta([1], "D")), r"timedelta64\[\w+\] is not supported.* durations into numb"),
        (lambda pd: pd.Series([True, None], dtype="boolean"), r"object is not supported.*na_value=np.nan"),
        (lambda pd: pd.Series(["a", "b"], dtype="category"), r"object is not supported.*series.cat.codes"),
        (lambda pd: pd.DataFrame({"a": [1.0], "b": ["x"]}), r"object is not supported.*missing values"),
    ],
)
def test_columns_that_are_no_numbers_are_explained(column: Any, said: str) -> None:
    pd: Any = pytest.importorskip("pandas")
    with pytest.raises(DtypeError, match=f"asarray: dtype {said}"):
        jnp.asarray(column(pd))


def test_the_advice_needs_no_library() -> None:
    with pytest.raises(OperandError, match="seconds from a start"):
        jnp.asarray(np.array(["2020-01-01"], "datetime64[D]"))
    times = np.array(["2020-01-01T00:00:00", "2020-01-01T00:01:00"], "datetime64[s]")
    assert jnp.asarray((times - times[0]) / np.timedelta64(1, "s")).tolist() == [0.0, 60.0]
    with pytest.raises(OperandError, match="categories theirs"):
        jnp.asarray(np.array(["a", None], object))


# polars and pyarrow --------------------------------------------------------------------------------------------------


def test_polars_takes_arrays() -> None:
    pl: Any = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    for dtype in ("float32", "float16", "int8", "int32", "uint16", "bool"):
        x = jnp.array([0, 1, 1, 0, 1]).astype(dtype)
        assert pl.Series(x).to_list() == x.tolist()
    frame = pl.DataFrame({"a": X, "m": M})
    assert frame["a"].dtype == pl.Float32
    assert frame["m"].dtype == pl.Array(pl.Float32, 2)
    assert frame["m"].to_list() == M.tolist()
    deep = jnp.arange(24).reshape(2, 3, 4)
    assert pl.Series(deep).to_list() == deep.tolist()
    assert pl.from_numpy(np.asarray(M)).shape == (3, 2)


def test_a_column_of_polars_keeps_the_elements() -> None:
    pl: Any = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    x = jnp.arange(1000.0) + 1.0
    series = pl.Series(x)
    del x
    junk = [jnp.zeros(1000) for _ in range(10)]
    assert series[999] == 1000.0
    assert len(junk) == 10


def test_pyarrow_takes_arrays() -> None:
    pa: Any = pytest.importorskip("pyarrow")
    assert pa.array(X).to_pylist() == X.tolist()
    assert pa.table({"a": X, "m": M})["m"].to_pylist() == M.tolist()
    assert jnp.asarray(pa.array([1, 2])).tolist() == [1, 2]
    assert pa.array(X, type=pa.float32()).type == pa.float32()


def test_arrays_of_polars_columns() -> None:
    pl: Any = pytest.importorskip("polars")
    assert jnp.asarray(pl.Series([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert jnp.sin(pl.Series([0.0])).tolist() == [0.0]
    assert jnp.asarray(pl.DataFrame({"a": [1, 2], "b": [3.5, 4.0]})).tolist() == [[1, 3.5], [2, 4]]
    np.testing.assert_array_equal(jnp.asarray(pl.Series([1, None])), [1.0, np.nan])
    with pytest.raises(DtypeError, match="is not supported"):
        jnp.asarray(pl.Series(["a"]))


def test_what_arrow_has_no_column_for() -> None:
    with pytest.raises(DtypeError, match="Arrow has no elements of dtype bfloat16"):
        jnp.ones(3, "bfloat16").__arrow_c_array__()
    with pytest.raises(DtypeError, match="Arrow has no elements of dtype complex64"):
        jnp.array([1j]).__arrow_c_array__()
    with pytest.raises(DtypeError, match="Arrow has no elements of dtype key<fry>"):
        pullback.random.split(pullback.random.key(0)).__arrow_c_array__()
    with pytest.raises(ShapeError, match="a scalar cannot be a column"):
        X[0].__arrow_c_array__()
    with pytest.raises(TracerArrayConversionError):
        jit(lambda x: x.__arrow_c_array__())(X)


def test_without_pyarrow_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingLibraryError, match=r"pip install pyarrow\).*np\.asarray\(x\)"):
        X.__arrow_c_array__()


def test_what_pyarrow_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls, where the library is not installed: the flat elements, and a list of each further axis."""
    asked: list[Any] = []

    class Column:
        def __arrow_c_array__(self, requested: Any) -> tuple[Any, Any]:
            return asked, requested

    def array(values: Any) -> Column:
        asked.append(values.tolist())
        return Column()

    def lists(column: Column, size: int) -> Column:
        asked.append(size)
        return column

    library = SimpleNamespace(array=array, FixedSizeListArray=SimpleNamespace(from_arrays=lists))
    monkeypatch.setitem(sys.modules, "pyarrow", library)
    assert jnp.arange(24).reshape(2, 3, 4).__arrow_c_array__("wish") == ([[*range(24)], 4, 3], "wish")


# xarray --------------------------------------------------------------------------------------------------------------


def test_xarray_keeps_arrays() -> None:
    xr: Any = pytest.importorskip("xarray")
    labelled = xr.DataArray(M, dims=("time", "place"), coords={"place": ["a", "b"]})
    assert isinstance(labelled.data, pullback.Array)
    assert labelled.sel(place="b").data.tolist() == [1.0, 3.0, 5.0]
    assert labelled.mean("time").data.tolist() == [2.0, 3.0]
    assert isinstance((labelled + 1).sum("place").data, pullback.Array)
    assert jnp.asarray(labelled).tolist() == M.tolist()
    assert grad(lambda x: (xr.DataArray(x, dims="t") ** 2).sum().data)(X).tolist() == [0.0, 2.0, 4.0]

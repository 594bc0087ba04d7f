"""Docstrings of the functions of a distribution, composed from what its definition says in words and formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SENTENCES = {
    "pdf": "Return the density of {of}.",
    "logpdf": "Return the logarithm of the density of {of}.",
    "pmf": "Return the probabilities of {of}.",
    "logpmf": "Return the logarithms of the probabilities of {of}.",
    "cdf": "Return the distribution function of {of}: the probability of at most ``{x}``.",
    "logcdf": "Return the logarithm of the distribution function of {of}, also where the function underflows.",
    "sf": "Return the survival function of {of}: the probability of more than ``{x}``, without cancellation.",
    "logsf": "Return the logarithm of the survival function of {of}, also where the function underflows.",
    "ppf": "Return the quantile of {of}: the inverse of the distribution function.",
    "isf": "Return the inverse of the survival function of {of}.",
    "entropy": "Return the entropy of {of}, in units of e.",
}
CONTINUOUS = {
    "pdf": "It is 0 outside the support, and ",
    "logpdf": "It is -inf outside the support, and ",
    "cdf": "It is 0 below the support and 1 above it, and ",
    "logcdf": "It is -inf below the support and 0 above it, and ",
    "sf": "It is 1 below the support and 0 above it, and ",
    "logsf": "It is 0 below the support and -inf above it, and ",
    "ppf": "It is the lower end of the support at 0, the upper end at 1, and ",
    "isf": "It is the upper end of the support at 0, the lower end at 1, and ",
}
"""The result where the first argument is outside the support of a density."""
EVERYWHERE = {
    **dict.fromkeys(("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"), "It is "),
    "ppf": "It is -inf at 0, inf at 1, and ",
    "isf": "It is inf at 0, -inf at 1, and ",
}
"""The same for a density that is positive everywhere."""
DISCRETE = {
    **CONTINUOUS,
    "pmf": "It is 0 where ``k`` is not an integer of the support, and ",
    "logpmf": "It is -inf where ``k`` is not an integer of the support, and ",
    "ppf": "It is a whole number: at 0 the one below the least count, at 1 the largest count, and ",
    "isf": "It is a whole number: at 0 the largest count, at 1 the one below the least count, and ",
    "entropy": "It is independent of ``loc``, and ",
}
"""The same for a distribution of integers."""
FIRST = {
    "x": "an array of real numbers, floats or integers, of any shape",
    "k": "an array of counts, integers or floats, of any shape",
    "quantile": "an array of probabilities, floats from 0 to 1, of any shape",
}
KEYWORDS = {"loc": "the shift of the variable", "scale": "the factor of the variable, positive"}
RAISES = """\
Raises:
  ArgumentError: an argument is missing, or there are too many (a TypeError).
  OperandError: an argument is neither an array nor a number (a TypeError).
  DtypeError: an argument is complex (a TypeError).
  ShapeError: the shapes do not broadcast (a TypeError and a ValueError)."""
QUANTILES = ("ppf", "isf")
REAL = "all real ``z``"
"""The support of a density that is positive everywhere."""
WITHOUT_CANCELLATION = (
    "The logarithm of 1 - exp(-y) is computed as in Mächler, *Accurately Computing log(1 - exp(-|a|))* (2012)."
)
"""A note on functions that :func:`~pullback.scipy.stats.distributions.log1mexp` computes."""


def _is_discrete(support: str) -> bool:
    """Return whether the support is one of integers."""
    return "i" in support.replace("`", " ").split()


def described(kind: str, of: str, first: str, parameters: Mapping[str, str], support: str) -> str:
    """Return the sentence, and the sections of arguments, results and errors, of the function ``kind``.

    Args:
      kind: the function, such as "logsf".
      of: the distribution, as in "the normal distribution".
      first: the name of the first argument.
      parameters: the descriptions of the other arguments, by name.
      support: the condition under which the formulas hold, of ``z`` or, for integers, of ``i``.
    """
    leading = next(iter(parameters)) if kind == "entropy" else first
    arguments = [] if kind == "entropy" else [f"  {first}: {FIRST['quantile' if kind in QUANTILES else first]}."]
    for parameter, what in parameters.items():
        shape = "an array of any shape" if parameter == leading else f"an array that broadcasts against ``{leading}``"
        arguments.append(f"  {parameter}: {what}; {shape}.")
    there = (EVERYWHERE if support == REAL else DISCRETE if _is_discrete(support) else CONTINUOUS)[kind]
    undefined = "for probabilities outside [0, 1] and " if kind in QUANTILES else ""
    return "\n".join([
        SENTENCES[kind].format(of=of, x=first), "", "Args:", *arguments, "", "Returns:",
        "  An array of the common float dtype of the arguments (the default one if all are integers), and of the",
        "  shape to which they broadcast.",
        f"  {there}NaN {undefined}where a parameter is outside its range.", "", RAISES,
    ])  # fmt: skip


def formula(kind: str, first: str, formulas: Sequence[str], support: str) -> str:
    """Return what the function ``kind`` is, as a paragraph.

    Args:
      kind: the function, such as "logsf".
      first: the name of the first argument.
      formulas: the density or the probabilities, the distribution function, and the survival function, as expressions
        of ``z`` or ``i``; or in words, if they begin with "the".
      support: the condition under which ``formulas`` hold, of ``z`` or, for integers, of ``i``.
    """
    discrete = _is_discrete(support)
    density, below, above = [text if text.startswith("the ") else f"``{text}``" for text in formulas]
    if kind.endswith("pmf"):
        return f"With ``i = k - loc``,\nthe probability is {density} for {support}."
    if kind.endswith("pdf"):
        return f"With ``z = (x - loc) / scale``,\nthe density is {density}, divided by ``scale``, for {support}."
    if kind == "entropy":
        return f"It is the sum of ``-P * log(P)`` over {support},\nwhere ``P`` is {density}."
    tail, function = ("survival", above) if kind.endswith("sf") else ("distribution", below)
    if kind not in QUANTILES:
        variable = "``i = floor(k - loc)``" if discrete else "``z = (x - loc) / scale``"
        return f"With {variable},\nthe {tail} function is {function} for {support}."
    if discrete:
        bound = f"at most ``{first}``" if kind == "isf" else f"at least ``{first}``"
        return (
            f"It is ``loc + i`` with the least integer ``i`` for which the {tail} function, {function}, is {bound}.\n"
            "Its derivative by each argument but ``loc`` is zero."
        )
    return f"It is ``loc + scale * z``, where the {tail} function, {function}, is ``{first}``."


def example(face: str, kind: str, operands: Sequence[str], result: str) -> str:
    """Return a doctest of the function ``kind`` of the public module ``face``, and its result to four digits."""
    package, _, name = face.rpartition(".")
    return f'>>> from {package} import {name}\n>>> print(f"{{{name}.{kind}({", ".join(operands)}):.4g}}")\n{result}\n'

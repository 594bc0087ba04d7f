"""Safety checks of export, which users can disable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pullback.backends.compiler.foreign_programs import TARGETS
from pullback.core.errors import ArgumentError, UnsupportedExportError


class DisabledSafetyCheck:
    """A safety check of export that the user disables; :meth:`platform` and :meth:`custom_call` make one.

    Args:
      text: ``"platform"``, or ``"custom_call:"`` and the name of a target.

    Raises:
      ArgumentError: another text (a TypeError and a ValueError).

    >>> from pullback import export
    >>> export.DisabledSafetyCheck.custom_call("my_kernel")
    custom_call:my_kernel
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        kind, _, target = text.partition(":")
        if text != "platform" and not (kind == "custom_call" and target):
            raise ArgumentError(
                f"DisabledSafetyCheck: use DisabledSafetyCheck.platform() or .custom_call(name), got {text!r}"
            )
        self._text = text

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Return the check that a function is called on a platform that it was exported for.

        Returns:
          A :class:`DisabledSafetyCheck`.

        >>> from pullback import export
        >>> export.DisabledSafetyCheck.platform()
        platform
        """
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Return the check that later releases have a custom-call target too.

        Args:
          target_name: the name of the target.

        Returns:
          A :class:`DisabledSafetyCheck`.

        >>> from pullback import export
        >>> export.DisabledSafetyCheck.custom_call("my_kernel").is_custom_call()
        'my_kernel'
        """
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Return the custom-call target of this check; None for another check.

        Returns:
          The name of the target, or None.

        >>> from pullback import export
        >>> export.DisabledSafetyCheck.platform().is_custom_call() is None
        True
        """
        kind, _, target = self._text.partition(":")
        return target if kind == "custom_call" else None

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


def disabled(checks: object) -> tuple[DisabledSafetyCheck, ...]:
    """Validate the checks that a user disables, and return them as a tuple.

    Raises:
      ArgumentError: the argument is no sequence of checks (a TypeError and ValueError).
    """
    found = tuple(checks) if isinstance(checks, Iterable) else (checks,)
    for check in found:
        if not isinstance(check, DisabledSafetyCheck):
            raise ArgumentError(f"export: disabled_checks must be a list of DisabledSafetyCheck, got {check!r}")
    return found


def targets(checks: Sequence[DisabledSafetyCheck]) -> frozenset[str]:
    """The custom-call targets that ``checks`` allow."""
    return frozenset(filter(None, (check.is_custom_call() for check in checks)))


def check_calls(names: Sequence[str], checks: Sequence[DisabledSafetyCheck], fun_name: str) -> None:
    """Raise if another release may lack one of ``names``, custom-call targets, unless ``checks`` disables the check.

    Raises:
      UnsupportedExportError: the program calls such a target (a ValueError and NotImplementedError).
    """
    unknown = [name for name in names if name not in TARGETS and name not in targets(checks)]
    if unknown:
        listed = ", ".join(f"DisabledSafetyCheck.custom_call({name!r})" for name in unknown)
        raise UnsupportedExportError(
            f"export of {fun_name}: the program calls functions of the runtime that other releases may not have: "
            f"{', '.join(unknown)}. To export it nevertheless, pass disabled_checks=[{listed}]."
        )

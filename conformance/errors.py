"""The error of a wrong use of the suite; the CLI turns it into one line and exit code 2."""

from __future__ import annotations

from collections.abc import Iterable


class UsageError(Exception):
    """An argument is wrong; the message names it, says what was given and what is allowed."""

    @classmethod
    def of(cls, argument: str, given: object, allowed: Iterable[str] | str) -> UsageError:
        """Make the error of ``argument``, which was ``given`` something that is not ``allowed``."""
        choices = allowed if isinstance(allowed, str) else ", ".join(allowed)
        return cls(f"{argument}: given {given!r}; allowed: {choices}")

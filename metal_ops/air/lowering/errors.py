"""The error of a kernel that this version of the emulator cannot run."""

from __future__ import annotations


class LoweringError(ValueError):
    """A kernel uses something that the emulator does not implement; the message names it."""

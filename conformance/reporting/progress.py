"""Progress on standard error: a line a unit, or one line that is rewritten on a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from conformance.record import BAD, Record


class Progress:
    """Shows units as they are done; everything that is not fine stays on the screen."""

    def __init__(self, total: int, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._total = total
        self._quiet = quiet
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._done = 0

    def unit(self, name: str, records: Sequence[Record]) -> None:
        """Show that a unit is done."""
        self._done += 1
        if self._quiet or not records:
            return
        whole = records[0]
        text = f"[{self._done}/{self._total}] {name}: {whole.verdict}, {whole.cases} cases, {whole.seconds:.1f} s"
        if not self._live:
            self._stream.write(text + "\n")
        else:
            width = shutil.get_terminal_size().columns - 1
            stays = whole.verdict in (*BAD, "fixed")
            self._stream.write("\r\x1b[K" + text[:width] + ("\n" if stays else ""))
        self._stream.flush()

    def close(self) -> None:
        """End the live line."""
        if self._live and not self._quiet:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

"""The emulated Metal GPU: opens the libraries of a PyTorch build and runs their kernels on the host's processor.

>>> from metal_ops.air import Gpu
>>> from metal_ops.builds import open_build
>>> import numpy as np
>>> gpu = Gpu(open_build("2.15.0").library())  # doctest: +SKIP
>>> x, y = np.linspace(0, 1, 4, dtype=np.float32), np.empty(4, np.float32)
>>> gpu.kernel("exp_dense_scalar_float_float").launch(  # doctest: +SKIP
...     {"input": x, "output": y}, threads=(4, 1, 1), group=(4, 1, 1)
... )

It needs neither the suite nor torch. The stages are modules: ``macho`` and ``archive`` (what is in the file),
``kernel`` (signature), ``lowering`` (AIR to host IR), ``host`` and ``program`` (code generation), ``execution``
(launches).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metal_ops.air.archive import Library
    from metal_ops.air.execution import Kernel
    from metal_ops.air.program import Mode

__all__ = ["Gpu"]


class Gpu:
    """The kernels of one library, compiled on first use.

    ``mode`` is :data:`~metal_ops.air.program.JUDGING` (checked, correctly rounded; the default) or
    :data:`~metal_ops.air.program.FAST`.
    """

    def __init__(self, library: Library, mode: Mode | None = None) -> None:
        from metal_ops.air.program import JUDGING

        self.library = library
        self.mode = mode or JUDGING
        self._kernels: dict[str, Kernel] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.library.functions

    def kernel(self, name: str) -> Kernel:
        """The kernel called ``name``, compiled.

        Raises :class:`~metal_ops.air.archive.ArchiveError` for an unknown or damaged kernel,
        :class:`~metal_ops.air.lowering.LoweringError` for one that uses something not implemented.
        """
        if name not in self._kernels:
            from metal_ops.air.execution import Kernel
            from metal_ops.air.program import compile_kernel

            self._kernels[name] = Kernel(compile_kernel(self.library, name, self.mode))
        return self._kernels[name]

"""The boundary between those who judge and the device: ``run(call, device) -> outcome``.

This package needs the standard library, NumPy and torch only. Both sides speak :mod:`conformance.worker.protocol`.
"""

from conformance.worker.executor import run
from conformance.worker.protocol import Call, Outcome, Tensor
from conformance.worker.transport import InProcess, Transport

__all__ = ["Call", "InProcess", "Outcome", "Tensor", "Transport", "run"]

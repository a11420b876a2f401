"""The torch device ``air``: ordinary PyTorch programs on the emulated GPU, in pure Python.

``register()`` makes torch know the device; from then on ``torch.randn(3, device="air")``, views, autograd and modules
work. A tensor of it is a plain :class:`torch.Tensor` with strides, an offset and a storage in host memory, so views,
in-place ops and lazy conjugation are torch's own. What torch computes on it runs the kernels of a PyTorch build through
:mod:`metal_ops.launch`; what has no launch raises NotImplementedError.

memory      storages, and tensors on them
views       ops that only look at memory in another way
transfers   between host and device
kernels     from an aten overload to its launch
mirror      ops for which PyTorch's Metal backend has kernels of its own although torch could compose them
helpers     what surrounds a judged op and has no kernel: random numbers
results     their shapes, strides and types, by torch's rules
out         results, allocated or provided by the caller
printing    repr
saving      torch.load
runtime     the hooks, the device module ``torch.air``, and which build is in use
"""

from metal_ops.backend.register import register
from metal_ops.backend.runtime import using

__all__ = ["register", "using"]

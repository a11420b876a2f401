"""Vector-Jacobian products of the ops, a file a family, as pure NumPy and SciPy functions.

``vjp(gradient, result, *operands, **params)`` gives the gradient of each tensor operand, in its shape; None if it has
none. ``gradient`` and ``result`` have the result's shape; ``result`` is what the forward saved, rounded as the device
did. A parameter of the op that may be a number or a tensor is an operand if it is an array, else it gets no entry.

The formulas are PyTorch's documented derivatives (``derivatives.yaml`` in ``torchgen``), step by step and with its
choices where the mathematics leaves one: subgradients at ties and limits, zeros at removable poles, the conjugate of
the derivative for complex operands. Whatever evaluates NumPy's operators, ufuncs, ``where``, sums and functions that
only move elements can evaluate them; intervals do. Exceptional values are expected: callers silence NumPy's warnings.
"""

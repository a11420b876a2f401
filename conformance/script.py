"""A stand-alone script of about a dozen lines for each failure, to be pasted into a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from conformance.case import Case, TensorSpec, by_keyword, differentiable
from conformance.dtypes import dtype as dtype_of
from conformance.formats import bits_of_array, component, number_text
from conformance.record import Record
from conformance.worker.protocol import Tensor

_SPELLED = 64
"""Elements of a storage up to which a script spells them out; beyond, it reads the case file beside it."""

_PLAIN = '''\
"""{title}

{message}
"""
import torch

torch.set_printoptions(precision=9)
{operands}{definition}
{on_device}print("cpu", {function}({cpu_arguments}))
print("float64", {wide_function}({wide_arguments}))
'''

_EMULATED = '''\
"""{title}

{message}
"""
import torch

torch.set_printoptions(precision=9)
{operands}{definition}
if torch.backends.mps.is_available():
    got = {function}({mps_arguments})
else:  # the kernel of the released build, emulated: pip install {package}
    from conformance.replay import call

    {got} = call({op!r}, {call_arguments}, device={device!r}, build={build!r})
print("got", got)
print("cpu", {function}({cpu_arguments}))
print("float64", {wide_function}({wide_arguments}))
'''

_GRADIENTS = """

def gradients({names}):
{leaves}
    results = {result}
    return torch.autograd.grad({results}, ({needed},), ({incoming},))


"""
"""The definition of a function that a script of a backward calls in place of the op."""

_FROM_FILE = '''\
"""{title}

{message}
"""
from pathlib import Path

from conformance.case import Case  # pip install {package}
from conformance.replay import outputs

case = Case.load(Path(__file__).with_suffix(".json"))
print("got", *outputs(case, device={device!r}, build={build!r}))
print("cpu", *outputs(case, device="cpu"))
'''
_PACKAGE = "metal-conformance"


class Function(NamedTuple):
    """What an op calls: the dotted paths below ``torch``, without and with ``out=``; whether it takes one list."""

    path: str
    listed: bool = False
    out: str | None = None


def script(record: Record, function: Function, *, device: str, build: str | None, torch_device: str) -> str:
    """Write the script that shows a failure.

    Parameters
    ----------
    record
        The failure's record; its case file must lie beside the script under the same name.
    function
        What the op calls.
    device
        As it was given to the run.
    build
        The version of the build that the device judged; None for devices that take none.
    torch_device
        The string torch knows the device by, for devices that torch itself knows.
    """
    case = Case.from_json(record.case)
    title = f"{record.op} {record.dtype} on {record.device}, build {record.build}: {record.verdict}"
    title += f" ({record.failure_class})"
    message = _wrapped(record.message or "") + (f"\n\n{_wrapped(record.features)}" if record.features else "")
    common = {"title": title, "message": message, "package": _PACKAGE, "device": device, "build": build}
    shown = _Shown(case, function)
    if device not in ("cpu", "cuda", "mps", "air") or shown.elements > _SPELLED:
        return _FROM_FILE.format(**common)
    common |= {
        "op": record.op,
        "operands": shown.operands,
        "definition": "\n" + shown.definition.strip() if shown.definition else "",
        "function": shown.function,
        "wide_function": shown.wide_function,
        "cpu_arguments": shown.arguments(),
        "wide_arguments": shown.arguments(widened=True),
    }
    if device == "air":
        emulated = {"mps_arguments": shown.arguments(moved="mps"), "got": shown.got}
        return _EMULATED.format(**common, **emulated, call_arguments=shown.call_arguments)
    on_device = f'print("{device}", {shown.function}({shown.arguments(moved=torch_device)}))\n'
    return _PLAIN.format(**common, on_device="" if device == "cpu" else on_device)


class _Shown:
    """A case as Python source: its tensors by name, and the call, or its backward, with them."""

    def __init__(self, case: Case, function: Function) -> None:
        self._case = case
        self._torch = f"torch.{function.path if case.out is None else function.out}"
        self._plain = function.path
        self._listed = function.listed
        provided = {} if case.out is None else {"out": case.out}
        self._specs = {**_named("x", case.tensors), **_named("g", case.gradients), **provided}
        self._operands = list(self._specs)[: len(case.tensors)]
        self._incoming = list(self._specs)[len(case.tensors) :][: len(case.gradients)]
        self._tensors = {name: spec.materialise() for name, spec in self._specs.items()}

    @property
    def elements(self) -> int:
        """How many elements all storages have."""
        return sum(_elements(tensor) for tensor in self._tensors.values())

    @property
    def operands(self) -> str:
        """Lines that make the tensors."""
        return "\n".join(_operand(name, spec, self._tensors[name]) for name, spec in self._specs.items())

    @property
    def function(self) -> str:
        """What is called: the op, or the function that differentiates it."""
        return "gradients" if self._case.requires_grad else self._torch

    @property
    def wide_function(self) -> str:
        """The same where it makes its result itself."""
        return "gradients" if self._case.requires_grad else f"torch.{self._plain}"

    @property
    def definition(self) -> str:
        """The source of the function that differentiates; nothing for a call without a backward."""
        if not self._case.requires_grad:
            return ""
        needed = [self._operands[position] for position in self._case.requires_grad]
        several = len(self._incoming) > 1
        incoming = [name for name in self._incoming if differentiable(self._specs[name].dtype)]
        return _GRADIENTS.format(
            names=", ".join(self._specs),
            leaves="\n".join(f"    {name} = {name}.detach().requires_grad_()" for name in needed),
            result=f"{self._torch}({self._call(self._operands)})",
            results="[result for result in results if result.requires_grad]" if several else "results",
            needed=", ".join(needed),
            incoming=", ".join(incoming),
        )

    @property
    def got(self) -> str:
        """What the values of :func:`conformance.replay.call` are unpacked to."""
        return ", ".join(["_"] * len(self._case.gradients) + ["*got"]) if self._case.requires_grad else "(got,)"

    @property
    def call_arguments(self) -> str:
        """The arguments of :func:`conformance.replay.call`, device and build apart."""
        operands = by_keyword((self._view(name, "") for name in self._operands), self._case.named)
        parts = operands + _keywords(self._case) + self._provided("")
        if self._case.requires_grad:
            incoming = "".join(self._view(name, "") + ", " for name in self._incoming)
            parts += [f"requires_grad={self._case.requires_grad}", f"gradients=({incoming})"]
        return ", ".join(parts)

    def arguments(self, *, moved: str | None = None, widened: bool = False) -> str:
        """The arguments of :attr:`function`: tensors moved to a device, or widened, as storages, and viewed there."""
        views = {}
        for name, spec in self._specs.items():
            change = f".to({moved!r})" if moved else _widening(spec, alone=len(self._operands) == 1) if widened else ""
            views[name] = self._view(name, change)
        if self._case.requires_grad:
            return ", ".join(views.values())
        # What the wide call computes is to be seen as it is, not as it is stored.
        provided = self._provided(f".to({moved!r})" if moved else ".clone()") if not widened else []
        return ", ".join([self._call([views[name] for name in self._operands]), *provided])

    def _provided(self, change: str) -> list[str]:
        return [] if self._case.out is None else [f"out={self._view('out', change)}"]

    def _call(self, tensors: Sequence[str]) -> str:
        operands = [f"[{', '.join(tensors)}]"] if self._listed else by_keyword(tensors, self._case.named)
        return ", ".join([*operands, *_keywords(self._case)])

    def _view(self, name: str, change: str) -> str:
        tensor = self._tensors[name]
        view = f".as_strided({tensor.shape}, {tensor.strides}, {tensor.offset})"
        return name + change + ("" if _is_plain(self._specs[name]) else view)


def _named(letter: str, specs: Sequence[TensorSpec]) -> dict[str, TensorSpec]:
    return {f"{letter}{number}" if len(specs) > 1 else letter: spec for number, spec in enumerate(specs)}


def _widening(spec: TensorSpec, *, alone: bool) -> str:
    """To double precision; integers stay where another operand tells the type, and bool always."""
    kind = dtype_of(spec.dtype).kind
    return {"float": ".double()", "complex": ".to(torch.complex128)", "int": ".double()" if alone else ""}.get(kind, "")


def _wrapped(text: str, width: int = 110) -> str:
    import textwrap

    return textwrap.fill(text.replace('"""', "'''").replace("\\", "\\\\"), width)


def _elements(tensor: Tensor) -> int:
    return len(tensor.storage) // dtype_of(tensor.dtype).itemsize


def _is_plain(spec: TensorSpec) -> bool:
    """Whether a tensor is dense at offset 0, so that its guard need not be shown."""
    return spec.layout.is_contiguous and not spec.layout.offset


def _operand(name: str, spec: TensorSpec, tensor: Tensor) -> str:
    """A line that makes a tensor: its elements, or for a strided one its whole storage."""
    dtype = dtype_of(spec.dtype)
    if _is_plain(spec):
        numbers = spec.logical()
    else:
        import numpy as np

        numbers = np.frombuffer(tensor.storage, dtype.numpy)
    words = [int(word) for word in bits_of_array(numbers, dtype)]
    texts = [_literal(word, spec.dtype) for word in words]
    if component(dtype).count == 2:
        texts = [f"complex({real}, {imag})" for real, imag in zip(texts[::2], texts[1::2], strict=True)]
    shape = f".reshape({list(spec.shape)})" if _is_plain(spec) and len(spec.shape) != 1 else ""
    return f"{name} = torch.tensor([{', '.join(texts)}], dtype=torch.{spec.dtype}){shape}"


def _literal(word: int, dtype: str) -> str:
    text = number_text(word, dtype_of(dtype))
    if dtype == "bool":
        return str(bool(word))
    return f'float("{text}")' if text.strip("-") in ("nan", "inf") else text


def _keywords(case: Case) -> list[str]:
    return [f"{name}={_python(value)}" for name, value in case.params.items()]


def _python(value: Any) -> str:
    if isinstance(value, str) and value.startswith("torch."):
        return value
    return f'float("{value}")' if isinstance(value, float) and value - value != 0 else repr(value)

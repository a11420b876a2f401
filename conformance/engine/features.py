"""Which features of a minimal failing case matter: each is changed alone, to see whether the case still fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.case import Case, TensorSpec, literal, ones
from conformance.dtypes import dtype as dtype_of
from conformance.engine.checker import Checker
from conformance.engine.minimise import element_case
from conformance.findings import OF_ELEMENTS

if TYPE_CHECKING:
    from conformance.engine.tally import Failure
    from conformance.op import Op

_TYPES = 4
"""Other element types that are tried."""

_LARGE = 1 << 18
"""Elements of a tensor from which a failure is about large tensors, and calls are dear."""


@dataclass(frozen=True)
class _Feature:
    """Something a failure may depend on; None where no call could tell."""

    name: str
    matters: bool | None
    why: str = ""

    @property
    def text(self) -> str:
        return f"{self.name} ({self.why})" if self.why else self.name


def features(op: Op, checker: Checker, failure: Failure) -> str:
    """Say in a sentence what a failure depends on and what not; known failures are failures here.

    A call that torch's rules or the device refuse tells nothing, so what it would have told is left out.
    """
    case = failure.case
    if max((spec.numel for spec in case.tensors), default=0) >= _LARGE:
        return "It was met with large tensors and not looked into."
    probe = _Probe(op, Checker(checker.device), failure)
    found = [*_values(probe, case), *_layout(probe, case), _size(probe, case), *_out(probe, case)]
    found += [*_parameters(probe, case), *_type(probe, case)]
    matter, do_not = ([feature.text for feature in found if feature.matters is wanted] for wanted in (True, False))
    return _sentence(matter, do_not)


@dataclass(frozen=True)
class _Probe:
    op: Op
    checker: Checker
    failure: Failure

    def fails(self, case: Case) -> bool | None:
        """Whether a changed case fails in the same way; None if it is no call that could, or fails in another class."""
        try:
            examined = self.checker.check(self.op, case)
        except Exception:
            return None  # no call at all, which is the changed case's fault and nobody's business
        finding = examined.finding
        if finding is None:
            return False if examined.outcome.status == "ok" else None
        if finding.kind in OF_ELEMENTS:
            finding = self.checker.narrowed(self.op, examined, self.failure.failure_class).finding
            if finding is None:
                return None
        return finding.kind == self.failure.finding.kind


def _values(probe: _Probe, case: Case) -> Iterator[_Feature]:
    """The values of each tensor, ones in place of them; incoming gradients together."""
    several = len(case.tensors) > 1
    for position, spec in enumerate(case.tensors):
        name = f"the values of operand {position}" if several else "the values"
        plain = (*case.tensors[:position], _ones(spec), *case.tensors[position + 1 :])
        yield from _changed(probe, name, case, replace(case, tensors=plain), "ones fail too")
    if case.gradients:
        plain = tuple(map(_ones, case.gradients))
        yield from _changed(probe, "the incoming gradient", case, replace(case, gradients=plain), "ones fail too")


def _ones(spec: TensorSpec) -> TensorSpec:
    return replace(ones(spec.dtype, spec.shape), layout=spec.layout)


def _changed(probe: _Probe, name: str, case: Case, changed: Case, why: str) -> Iterator[_Feature]:
    """The feature that a changed case lacks; where the change changes nothing, it does not matter what it was."""
    fails = True if _same_bytes(case, changed) else probe.fails(changed)
    yield _Feature(name, None if fails is None else not fails, why if fails else "")


def _same_bytes(case: Case, other: Case) -> bool:
    def bytes_of(of: Case) -> list[bytes]:
        return [spec.materialise().storage for spec in (*of.tensors, *of.gradients)]

    return bytes_of(case) == bytes_of(other)


def _layout(probe: _Probe, case: Case) -> Iterator[_Feature]:
    if case == case.contiguous():
        yield _Feature("the layout", False)
    else:
        yield from _changed(probe, "the layout", case, case.contiguous(), "contiguous tensors fail too")


def _size(probe: _Probe, case: Case) -> _Feature:
    """One element alone; shapes that are no single element matter where it passes or is no call."""
    if all(spec.numel <= 1 for spec in case.tensors):
        return _Feature("the size", False)
    alone = element_case(probe.op, case, probe.failure.finding.element, probe.failure.finding.part)
    if alone is None:
        return _Feature("the shape", True)  # that smaller ones pass, shrinking has found out
    fails = probe.fails(alone)
    return _Feature("the size", None if fails is None else not fails, "one element fails too" if fails else "")


def _out(probe: _Probe, case: Case) -> Iterator[_Feature]:
    if case.out is not None:
        name = f"the {case.out.dtype} tensor given as out"
        fails = probe.fails(replace(case, out=None))
        yield _Feature(name, None if fails is None else not fails)


def _parameters(probe: _Probe, case: Case) -> Iterator[_Feature]:
    """Each parameter, left out; one that an op cannot do without is not spoken of."""
    for name, value in case.params.items():
        fails = probe.fails(replace(case, params={key: v for key, v in case.params.items() if key != name}))
        yield _Feature(
            f"{name}={value!r}", None if fails is None else not fails, "left out, it fails too" if fails else ""
        )


def _type(probe: _Probe, case: Case) -> Iterator[_Feature]:
    """The element type: the same numbers in other types of its kind, where those have them exactly."""
    kind = dtype_of(case.dtype).kind
    others = [name for name in probe.op.dtypes if name != case.dtype and dtype_of(name).kind == kind]
    outcomes: dict[str, bool] = {}
    for name in others:
        retyped = _retyped(case, name)
        fails = None if retyped is None or len(outcomes) >= _TYPES else probe.fails(retyped)
        if fails is not None:
            outcomes[name] = fails
    failing = [name for name, fails in outcomes.items() if fails]
    passing = [name for name, fails in outcomes.items() if not fails]
    if passing:
        yield _Feature("the element type", True, f"right in {_listed(passing)}" + _too(failing))
    elif failing:
        yield _Feature("the element type", False, f"{_listed(failing)} {_verb(failing)} too")


def _too(failing: Sequence[str]) -> str:
    return f", {_listed(failing)} {_verb(failing)} too" if failing else ""


def _verb(names: Sequence[str]) -> str:
    return "fails" if len(names) == 1 else "fail"


def _retyped(case: Case, dtype: str) -> Case | None:
    """The case in another element type; None if that lacks one of its numbers."""
    changed: list[TensorSpec] = []
    for spec in (*case.tensors, *case.gradients):
        retyped = _cast(spec, dtype) if spec.dtype == case.dtype else spec
        if retyped is None:
            return None
        changed.append(retyped)
    count = len(case.tensors)
    out = case.out and (replace(case.out, dtype=dtype) if case.out.dtype == case.dtype else case.out)
    return replace(case, dtype=dtype, tensors=tuple(changed[:count]), gradients=tuple(changed[count:]), out=out)


def _cast(spec: TensorSpec, dtype: str) -> TensorSpec | None:
    import numpy as np

    if dtype_of(dtype).kind == "complex":
        return None  # NumPy has no complex32 to convert to
    wide = np.asarray(spec.logical())
    with np.errstate(all="ignore"):
        narrow = wide.astype(dtype_of(dtype).numpy)
        back = narrow.astype(wide.dtype)
    same = (back == wide) | ((back != back) & (wide != wide))
    return literal(narrow, dtype, spec.layout) if bool(np.all(same)) else None


def _sentence(matter: Sequence[str], do_not: Sequence[str]) -> str:
    if not matter:
        return f"It depends on nothing that was changed: {_listed(do_not)}."
    verb = "It depends on " + _listed(matter)
    return verb + (f", not on {_listed(do_not, 'or')}." if do_not else ".")


def _listed(names: Sequence[str], last: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"

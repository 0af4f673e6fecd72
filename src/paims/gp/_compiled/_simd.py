"""Four doubles in one register: a vector type for Numba, and an exponential on it.

LLVM's vectoriser rarely finds the register tiles that matrix products need, and Numba from PyPI
has no vector mathematics library. With an explicit type the compiled code is what is written
here; on machines with shorter registers LLVM splits the operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from paims._jit import njit

LANES = 4
Vector = Any  # Float64x4 in compiled code, which is the only place where there are any
F = TypeVar("F", bound=Callable[..., Any])

# Numba's own types, where it has them, do not cover what is used of it here.
_intrinsic: Any = intrinsic
_get_or_insert_function: Any = cgutils.get_or_insert_function
# What is called by compiled code only needs no entrance from Python.
_INNER: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def entry(function: F) -> F:
    """Compile at the first call, cache on disk where that can be written, release the GIL."""
    return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))


def inline(function: F) -> F:
    """Compile into every caller, so that tiles stay in registers."""
    return cast(F, njit(forceinline=True, **_INNER)(function))


def part(function: F) -> F:
    """Compile as a function of its own, called by an entry."""
    return cast(F, njit(**_INNER)(function))


class Float64x4(types.Type):
    """Numba's view of an LLVM vector of four doubles; it exists in compiled code only."""

    def __init__(self) -> None:
        super().__init__(name="float64x4")  # type: ignore[no-untyped-call, unused-ignore]


_VEC = ir.VectorType(ir.DoubleType(), LANES)
_INT_VEC = ir.VectorType(ir.IntType(64), LANES)
_float64x4 = Float64x4()


class _Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VEC)  # type: ignore[no-untyped-call, unused-ignore]


register_model(Float64x4)(_Model)


def _operation(emit: Callable[..., Any], n_args: int) -> Any:
    """Intrinsic on ``n_args`` vectors; ``emit(builder, *values)`` writes its instructions."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return emit(builder, *args)

    def unary(typingctx: Any, a: Any) -> Any:
        return _float64x4(a), generate

    def binary(typingctx: Any, a: Any, b: Any) -> Any:
        return _float64x4(a, b), generate

    def ternary(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
        return _float64x4(a, b, c), generate

    def quaternary(typingctx: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        return _float64x4(a, b, c, d), generate

    return _intrinsic((unary, binary, ternary, quaternary)[n_args - 1])


def _llvm(name: str, builder: Any, *args: Any) -> Any:
    signature = ir.FunctionType(_VEC, [_VEC] * len(args))
    function = _get_or_insert_function(builder.module, signature, f"llvm.{name}.v{LANES}f64")
    return builder.call(function, args)


add = _operation(lambda builder, a, b: builder.fadd(a, b), 2)
sub = _operation(lambda builder, a, b: builder.fsub(a, b), 2)
mul = _operation(lambda builder, a, b: builder.fmul(a, b), 2)
div = _operation(lambda builder, a, b: builder.fdiv(a, b), 2)
sqrt = _operation(lambda builder, a: _llvm("sqrt", builder, a), 1)
copysign = _operation(lambda builder, a, b: _llvm("copysign", builder, a, b), 2)
# a b + c and c - a b, rounded once where the machine can
fma = _operation(lambda builder, a, b, c: _llvm("fmuladd", builder, a, b, c), 3)
fnma = _operation(lambda builder, a, b, c: _llvm("fmuladd", builder, builder.fneg(a), b, c), 3)
# c where a < b, else d (also where a or b is NaN)
where_less = _operation(
    lambda builder, a, b, c, d: builder.select(builder.fcmp_ordered("<", a, b), c, d), 4
)


def _power_of_two(builder: Any, shifted: Any) -> Any:
    """2^k from a vector that holds 1.5 2^52 + k: its low bits are k in two's complement."""
    bits = builder.add(builder.bitcast(shifted, _INT_VEC), ir.Constant(_INT_VEC, [1023] * LANES))
    return builder.bitcast(builder.shl(bits, ir.Constant(_INT_VEC, [52] * LANES)), _VEC)


power_of_two = _operation(_power_of_two, 1)


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VEC.as_pointer())


def _load(typingctx: Any, array: Any, index: Any) -> Any:
    """Four consecutive entries of a flat array, from ``index`` on; no bounds are checked."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_address(context, builder, signature.args[0], *args), align=8)

    return _float64x4(array, types.intp), generate


def _store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Write a vector to four consecutive entries of a flat array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], *args[:2])
        builder.store(args[2], address, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


def _splat(typingctx: Any, value: Any) -> Any:
    """A vector of four equal numbers."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        empty = ir.Constant(_VEC, ir.Undefined)
        first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        one = builder.insert_element(empty, args[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(one, empty, first)

    return _float64x4(types.float64), generate


load = _intrinsic(_load)
store = _intrinsic(_store)
splat = _intrinsic(_splat)

_SHIFT = 1.5 * 2.0**52  # adding it rounds to an integer and leaves that in the low bits
_LOG2_E = 1.0 / math.log(2.0)
_LN2_HIGH = float.fromhex("0x1.62e42fefa0000p-1")  # 33 bits: its products with k are exact
_LN2_LOW = float.fromhex("0x1.cf79abc9e3b3ap-40")
_TAYLOR = tuple(1.0 / math.factorial(k) for k in range(13, 1, -1))


@inline
def exp_expm1(x: Vector) -> tuple[Vector, Vector]:
    """Return e^x and e^x - 1 for x <= 700; e^x is 0 from about -746 downwards.

    x = k log 2 + r with |r| <= log(2)/2, e^r - 1 by its Taylor polynomial of degree 13 (remainder
    below 5e-18), 2^k in two factors so that the result underflows gradually.
    """
    shift = splat(_SHIFT)
    low = splat(-1100.0)
    x = where_less(low, x, x, low)
    k = sub(fma(x, splat(_LOG2_E), shift), shift)
    r = fnma(k, splat(_LN2_LOW), fnma(k, splat(_LN2_HIGH), x))
    s = splat(_TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        s = fma(s, r, splat(coefficient))
    s = fma(mul(r, r), s, r)
    low = splat(-1000.0)
    first = where_less(low, k, k, low)
    scale = power_of_two(add(first, shift))
    rest = power_of_two(add(sub(k, first), shift))
    full = mul(scale, rest)
    return mul(fma(scale, s, scale), rest), fma(full, s, sub(full, splat(1.0)))

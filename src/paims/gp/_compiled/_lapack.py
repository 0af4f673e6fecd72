"""SciPy's LAPACK and BLAS, called from compiled code without the interpreter.

Numba knows few of the routines, and what it keeps on disk must not hold addresses. So these come
as an argument, one for each of ``ROUTINES``, and ``call`` jumps to one of them. Matrices are as
Fortran has them: column by column, ``ld`` doubles from a column to the next.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from paims._arrays import Array, FloatArray
from paims.gp._compiled._simd import part

ROUTINES = ("dgemm", "dpotrf", "dpotri", "dsygst", "dsymm", "dsyr2k", "dsyrk", "dtrsv")
_GEMM, _POTRF, _POTRI, _SYGST, _SYMM, _SYR2K, _SYRK, _TRSV = range(len(ROUTINES))
Addresses = tuple[int, ...]

# Characters are bytes, which tells them from the integers.
_LOWER, _LEFT, _RIGHT, _NO, _YES = (np.uint8(ord(letter)) for letter in "LLRNT")

# Numba's own types do not cover what is used of it here.
_intrinsic: Any = intrinsic
_once: Any = cgutils.alloca_once_value


@cache
def addresses() -> Addresses:
    """Where the ``ROUTINES`` are in this process."""
    from scipy.linalg import cython_blas, cython_lapack  # noqa: PLC0415

    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found = []
    for routine in ROUTINES:
        capsules = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
        name = name_of(capsules[routine])
        if b" int *" not in name:
            raise ImportError(
                f"SciPy's {routine} takes other integers than C's int ({name.decode()}): install "
                "a SciPy whose BLAS has 32-bit integers, as those on PyPI and conda-forge do."
            )
        found.append(int(pointer_of(capsules[routine], name)))
    return tuple(found)


def _call(typingctx: Any, address: Any, arguments: Any) -> Any:
    """Call a Fortran routine: numbers and characters go by reference, arrays as they are."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        passed = []
        for i, kind in enumerate(signature.args[1].types):
            value = builder.extract_value(args[1], i)
            if isinstance(kind, types.Array):
                place = context.make_array(kind)(context, builder, value).data
            else:
                if isinstance(kind, types.Integer) and kind != types.uint8:
                    value = builder.trunc(value, ir.IntType(32))
                place = _once(builder, value)
            passed.append(builder.bitcast(place, pointer))
        routine = ir.FunctionType(ir.VoidType(), [pointer] * len(passed)).as_pointer()
        builder.call(builder.inttoptr(args[0], routine), passed)
        return context.get_dummy_value()

    return types.void(types.intp, arguments), generate


call = _intrinsic(_call)


@part
def cholesky(lapack: Addresses, A: FloatArray, n: int, ld: int, info: Array) -> bool:
    """Lower factor of A in its lower triangle; whether A is positive definite."""
    call(lapack[_POTRF], (_LOWER, n, A, ld, info))
    return bool(info[0] == 0)


@part
def invert(lapack: Addresses, L: FloatArray, n: int, ld: int, info: Array) -> None:
    """Lower triangle of (L L')^-1 in the place of L."""
    call(lapack[_POTRI], (_LOWER, n, L, ld, info))


@part
def whiten(lapack: Addresses, A: FloatArray, L: FloatArray, n: int, ld: int, info: Array) -> None:
    """Lower triangle of L^-1 A L^-T in the place of that of A."""
    call(lapack[_SYGST], (1, _LOWER, n, A, ld, L, ld, info))


@part
def solve(lapack: Addresses, L: FloatArray, n: int, ld: int, b: FloatArray) -> None:
    """L^-1 b in the place of b."""
    call(lapack[_TRSV], (_LOWER, _NO, _NO, n, L, ld, b, 1))


@part
def solve_transposed(lapack: Addresses, L: FloatArray, n: int, ld: int, b: FloatArray) -> None:
    """L^-T b in the place of b."""
    call(lapack[_TRSV], (_LOWER, _YES, _NO, n, L, ld, b, 1))


@part
def add_symmetric_product(
    lapack: Addresses,
    scale: float,
    S: FloatArray,
    ld: int,
    B: FloatArray,
    ldb: int,
    keep: float,
    C: FloatArray,
    ldc: int,
    rows: int,
    columns: int,
) -> None:
    """C = keep C + scale S B for a symmetric S, of which the lower triangle is read."""
    if rows > 0:
        call(
            lapack[_SYMM],
            (_LEFT, _LOWER, rows, columns, scale, S, ld, B, ldb, keep, C, ldc),
        )


@part
def add_product_with_symmetric(
    lapack: Addresses,
    scale: float,
    B: FloatArray,
    ldb: int,
    S: FloatArray,
    ld: int,
    keep: float,
    C: FloatArray,
    ldc: int,
    rows: int,
    columns: int,
) -> None:
    """C = keep C + scale B S for a symmetric S, of which the lower triangle is read."""
    call(lapack[_SYMM], (_RIGHT, _LOWER, rows, columns, scale, S, ld, B, ldb, keep, C, ldc))


@part
def add_product(
    lapack: Addresses,
    scale: float,
    A: FloatArray,
    lda: int,
    B: FloatArray,
    ldb: int,
    keep: float,
    C: FloatArray,
    ldc: int,
    rows: int,
    columns: int,
    length: int,
) -> None:
    """C = keep C + scale A B'."""
    call(
        lapack[_GEMM],
        (_NO, _YES, rows, columns, length, scale, A, lda, B, ldb, keep, C, ldc),
    )


@part
def subtract_products(
    lapack: Addresses, A: FloatArray, B: FloatArray, k: int, C: FloatArray, n: int, ld: int
) -> None:
    """C = C - A'B - B'A, lower triangle, for A and B of k rows."""
    if k > 0:
        call(lapack[_SYR2K], (_LOWER, _YES, n, k, -1.0, A, k, B, k, 1.0, C, ld))


@part
def gram(lapack: Addresses, A: FloatArray, length: int, n: int, C: FloatArray) -> None:
    """Lower triangle of C = A'A for the n columns of A."""
    call(lapack[_SYRK], (_LOWER, _YES, n, length, 1.0, A, length, 0.0, C, n))

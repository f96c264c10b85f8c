"""Loops to machine code by Numba: an object file with a function of the arguments as they are.

Numba's own function takes the fields of arrays one by one. The one here takes Python's tuple of
arguments, looks whether they are of the kind that the code is for, and reads the fields from memory
as NumPy's interface in C lays them out: so a call costs no more than one by Numba.
"""

import ctypes
import re
from collections.abc import Iterator
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir
from numba import extending, njit, typeof
from numba.core import cgutils, types
from numba.np.arrayobj import populate_array

from eqsep.engine.code_cache import kept
from eqsep.engine.machine_code import ENTRY, OBJECTS, TYPES, Array, Loop

_POINTER, _INT, _BYTE = ir.IntType(8).as_pointer(), ir.IntType(32), ir.IntType(8)
_WORD = ctypes.sizeof(ctypes.c_void_p)
_HEAD, _ITEMS = object.__basicsize__, tuple.__basicsize__  # of objects; before a tuple's items
_TYPE = _HEAD - _WORD  # of an object, in its head
_SIZE = _HEAD  # of a tuple
_DATA, _NDIM, _SHAPE, _STRIDES, _DTYPE, _FLAGS = (_HEAD + i * _WORD for i in (0, 1, 2, 3, 5, 6))
_ORDER, _NUMBER = _HEAD + _WORD + 2, _HEAD + _WORD + 4  # of a dtype
_DESTRUCTOR = "NRT_MemInfo_call_dtor"  # of memory that a loop owns: it owns none


def dispatcher(loop: Loop) -> Any:
    """The loop as a function of Numba's, kept on disk by Numba."""
    return kept(_jitted(loop))


def _jitted(loop: Loop, **options: Any) -> Any:
    for formula in loop.calls:
        extending.register_jitable(formula)
    fastmath = set(loop.fastmath) or False
    return njit(nogil=True, fastmath=fastmath, error_model="numpy", **options)(loop.loop)


def emitted(loop: Loop, args: tuple[Any, ...], kinds: tuple[Any, ...]) -> bytes | None:
    """An object file for arguments of these kinds; None where the loop needs more than libc."""
    function = _jitted(loop, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    signature = tuple(map(typeof, args))
    function.compile(signature)
    result = function.overloads[signature]
    text = function.inspect_llvm(signature)
    if not all(map(_is_everywhere, _needed(text))):
        return None
    module = llvm.parse_assembly(text)
    module.link_in(llvm.parse_assembly(str(_Entry(result, signature, kinds).module)))
    machine_code: bytes = result.library.codegen._tm.emit_object(module)
    return machine_code


def _needed(text: str) -> Iterator[str]:
    """The functions that code calls, but LLVM's own."""
    names = re.findall(r'^declare [^@]*@"?([^"(]+)', text, re.MULTILINE)
    return (name for name in names if not name.startswith("llvm.") and name != _DESTRUCTOR)


def _is_everywhere(name: str) -> bool:
    """Whether every process finds the function, as those of C's mathematics."""
    try:
        return hasattr(ctypes.CDLL(None), name)
    except TypeError:  # Windows has no such library
        return False


class _Entry:
    """The function of a tuple of arguments, as LLVM's code."""

    def __init__(self, result: Any, signature: tuple[Any, ...], kinds: tuple[Any, ...]) -> None:
        self._context = context = result.target_context
        self.module = context.create_module(ENTRY)
        types_known = ir.ArrayType(_POINTER, len(OBJECTS))
        self._types = ir.GlobalVariable(self.module, types_known, TYPES)
        self._types.initializer = ir.Constant(types_known, None)
        entry = ir.Function(self.module, ir.FunctionType(_INT, [_POINTER]), ENTRY)
        self._builder = ir.IRBuilder(entry.append_basic_block())
        self._other = entry.append_basic_block()
        ir.IRBuilder(self._other).ret(_INT(1))
        args = self._items(entry.args[0], signature, kinds)
        function = context.declare_function(self.module, result.fndesc)
        status, _ = context.call_conv.call_function(
            self._builder, function, types.none, signature, args
        )
        self._builder.ret(self._builder.zext(status.is_error, _INT))
        destructor = ir.Function(
            self.module, ir.FunctionType(ir.VoidType(), [_POINTER]), _DESTRUCTOR
        )
        ir.IRBuilder(destructor.append_basic_block()).ret_void()

    def _items(self, at: Any, kinds_of: Any, kinds: tuple[Any, ...]) -> list[Any]:
        """The items of a tuple, if it has as many as there are kinds."""
        self._check(self._word(at, _SIZE), len(kinds))
        pairs = enumerate(zip(kinds_of, kinds, strict=True))
        return [
            self._value(self._load(at, _ITEMS + i * _WORD, _POINTER), of, kind)
            for i, (of, kind) in pairs
        ]

    def _value(self, at: Any, of: Any, kind: Any) -> Any:
        """What Numba's code takes for an object, if that is of this kind."""
        own = {Array: 0, tuple: 1}.get(type(kind), 2)
        known = self._load(self._types, own * _WORD, _POINTER)
        self._check(self._load(at, _TYPE, _POINTER), known)
        if isinstance(kind, Array):
            return self._array(at, of, kind)
        if isinstance(kind, tuple):
            return self._context.make_tuple(self._builder, of, self._items(at, of, kind))
        return self._load(at, _HEAD, self._context.get_data_type(of))

    def _array(self, at: Any, of: Any, kind: Array) -> Any:
        dtype = self._load(at, _DTYPE, _POINTER)
        self._check(self._load(dtype, _NUMBER, _INT), kind.number)
        self._check(self._load(dtype, _ORDER, _BYTE), ord(kind.order))
        self._check(self._load(at, _NDIM, _INT), kind.ndim)
        self._check(self._builder.and_(self._load(at, _FLAGS, _INT), _INT(kind.mask)), kind.flags)
        array = self._context.make_array(of)(self._context, self._builder)
        element = self._context.get_data_type(of.dtype)
        shape, strides = (self._load(at, place, _POINTER) for place in (_SHAPE, _STRIDES))
        populate_array(
            array,
            data=self._load(at, _DATA, element.as_pointer()),
            shape=[self._word(shape, i * _WORD) for i in range(kind.ndim)],
            strides=[self._word(strides, i * _WORD) for i in range(kind.ndim)],
            itemsize=self._context.get_constant(types.intp, self._context.get_abi_sizeof(element)),
            meminfo=None,
        )
        return array._getvalue()

    def _check(self, found: Any, expected: Any) -> None:
        """Go on where the two are equal."""
        expected = found.type(expected) if isinstance(expected, int) else expected
        then = self._builder.append_basic_block()
        self._builder.cbranch(self._builder.icmp_unsigned("==", found, expected), then, self._other)
        self._builder.position_at_end(then)

    def _word(self, at: Any, offset: int) -> Any:
        return self._load(at, offset, self._context.get_value_type(types.intp))

    def _load(self, at: Any, offset: int, of: Any) -> Any:
        return self._builder.load(cgutils.pointer_add(self._builder, at, offset, of.as_pointer()))

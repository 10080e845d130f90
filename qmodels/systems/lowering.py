"""Functions that only kernels call: lowered by themselves, made machine code within the kernel alone.

Numba optimizes every function and makes machine code of it with all that it calls, and so does each of
its callers: what is called ten deep is compiled ten times. Parts wait for the kernel, which takes them
all at once. Measured with Numba 0.68, against its public decorators: the simulator of packet processors
compiles in 28 s of a core instead of 50 (58 without the facts), that of networks-on-chip in 12 s instead
of 18. Numba is slow to load: import this inside functions.
"""

from __future__ import annotations

import gc
from typing import Any

from numba import _dynfunc, njit, version_info
from numba.core import ir, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.event import Listener, register
from numba.core.ir_utils import get_definition, guard
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import IRProcessing

KNOWN = (0, 62) <= version_info.short < (0, 69)
"""Whether what is used of Numba's inside is as it was tried; others compile every part by itself, as ever."""


_apart: set[Any] = set()


class _Pause(Listener):  # type: ignore[misc]
    """Collects no garbage while Numba compiles: its objects live until the end, and are many."""

    def __init__(self) -> None:
        self._depth, self._collects = 0, False

    def on_start(self, event: Any) -> None:
        """Stop at the outermost function; one thread compiles at a time."""
        if self._depth == 0:
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Go on after the outermost function."""
        self._depth -= 1
        if self._depth == 0 and self._collects:
            gc.enable()


register("numba:compile", _Pause())


class _Waiting(JITCodeLibrary):  # type: ignore[misc]
    """The code of a part, before the passes that look at several functions."""

    apart = False

    def _ensure_finalized(self) -> None:
        """Leave it as it is."""

    def _optimize_functions(self, ll_module: Any) -> None:
        # As Numba does, but once instead of for everything that is only declared here, too.
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _get_module_for_linking(self) -> Any:
        """Return a copy of the part's code and that of all parts it calls."""
        parts: list[Any] = [self]
        for part in parts:
            parts += [other for other in part._linking_libraries if other not in parts]
        whole = self._own_module().clone()
        for part in parts[1:]:
            own = isinstance(part, _Waiting)
            whole.link_in(part._own_module() if own else part._get_module_for_linking(), preserve=True)
        return whole

    def _own_module(self) -> Any:
        """Return the part's own code, which may stand in several kernels."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"
                if self.apart:
                    function.add_function_attribute("noinline")
        return self._final_module


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):  # type: ignore[misc]
    _name = "lower_part"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        state.library = _Waiting(context.codegen(), state.func_id.func_qualname)
        state.library.apart = state.func_id.func in _apart
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state.cr
        # Kernels know what they call by an object that Python could call; this one has no code.
        name, module = lowered.fndesc.qualname, lowered.fndesc.lookup_module()
        key = _dynfunc.make_function(module, name, name, 0, lowered.env, (state.library,))
        context.insert_user_function(key, lowered.fndesc, [state.library])
        state.cr = lowered._replace(cfunc=key)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _StateFacts(FunctionPass):  # type: ignore[misc]
    """Put in what the types of arguments say: branches never taken are then not even compiled."""

    _name = "state_facts"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        whole = state.func_ir
        for block in whole.blocks.values():
            for line in block.find_insts(ir.Assign):
                asked = line.value
                if isinstance(asked, ir.Expr) and asked.op == "getattr":
                    owner = guard(get_definition, whole, asked.value)
                    facts = getattr(state.args[owner.index], "facts", {}) if isinstance(owner, ir.Arg) else {}
                    if asked.attr in facts:
                        line.value = ir.Const(facts[asked.attr], line.loc)
                        whole._definitions[line.target.name] = [line.value]
        return True


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    """Compile a function as far as a kernel needs it."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's own passes, up to machine code."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_LowerPart if each is NativeLowering else each, what) for each, what in passes.passes
        ]
        passes.add_pass_after(_StateFacts, IRProcessing)
        passes.finalize()
        return [passes]


def compile_part(function: Any, *, apart: bool = False, **options: Any) -> Any:
    """Compile a function that nothing but compiled functions calls, divisions unchecked.

    What is called seldom but from many places stays ``apart`` from its callers.
    """
    if apart:
        _apart.add(function)
    # What a part calls would otherwise be copied as it is itself.
    options.setdefault("forceinline", False)
    if KNOWN:
        options["pipeline_class"] = _PartCompiler
    part = njit(
        nogil=True,
        error_model="numpy",
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **options,
    )(function)
    if KNOWN and part is not function:  # Numba is not told to leave it as it is
        _take_any_number(part)
    return part


def _take_any_number(part: Any) -> None:
    """Compile a part once for all whole numbers: Numba does once more for each that stands in a call."""
    template = part.get_call_template

    def of_any(arguments: Any, named: Any) -> Any:
        return template(tuple(map(_any_number, arguments)), {k: _any_number(v) for k, v in named.items()})

    part.get_call_template = of_any


def _any_number(kind: Any) -> Any:
    """Return the type of a whole number for that of one with its value, others as they are."""
    return kind.literal_type if isinstance(kind, types.IntegerLiteral) else kind

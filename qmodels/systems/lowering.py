"""Functions that only kernels call: lowered by themselves, made machine code within the kernel alone.

Numba optimizes every function and makes machine code of it with all that it calls, and so does each of
its callers: what is called ten deep is compiled ten times. Parts wait for the kernel, which takes them
all at once. Numba is slow to load: import this inside functions.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc, njit, version_info
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

KNOWN = (0, 62) <= version_info.short < (0, 69)
"""Whether what is used of Numba's inside is as it was tried; others compile every part by itself, as ever."""


class _Waiting(JITCodeLibrary):  # type: ignore[misc]
    """The code of a part, before the passes that look at several functions."""

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
        return self._final_module


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPart(NativeLowering):  # type: ignore[misc]
    _name = "lower_part"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        state.library = _Waiting(context.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state.cr
        # Kernels know what they call by an object that Python could call; this one has no code.
        name, module = lowered.fndesc.qualname, lowered.fndesc.lookup_module()
        key = _dynfunc.make_function(module, name, name, 0, lowered.env, (state.library,))
        context.insert_user_function(key, lowered.fndesc, [state.library])
        state.cr = lowered._replace(cfunc=key)
        return True


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    """Compile a function as far as a kernel needs it."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's own passes, up to machine code."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_LowerPart if each is NativeLowering else each, what) for each, what in passes.passes
        ]
        passes.finalize()
        return [passes]


def compile_part(function: Any, **options: Any) -> Any:
    """Compile a function that nothing but compiled functions calls, divisions unchecked."""
    if KNOWN:
        options["pipeline_class"] = _PartCompiler
    return njit(
        nogil=True,
        error_model="numpy",
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **options,
    )(function)

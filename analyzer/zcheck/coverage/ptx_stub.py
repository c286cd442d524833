"""Stub PTX: kernels that only trap, print or return, standing in for SASS that does the work.

NVIDIA's libraries carry them (cuBLAS: 326 of 4,271 PTX kernels): the PTX loads everywhere and computes nowhere.
An empty kernel whose SASS is as empty (``cub::EmptyKernel``) is none.
"""

from __future__ import annotations

from zcheck.model.device_code import PtxFunction, PtxModule

# Statements that by themselves change nothing outside the kernel, as found around a trap, a printf or a return.
_HARMLESS = frozenset({
    "ret", "exit", "trap", "brkpt", "bra", "call", "mov", "cvta", "add", "setp", "nanosleep", "pmevent",
    "bar", "barrier",
})  # fmt: skip
_LOCAL = ("ld.param", "st.param", "st.local", "ld.local", "ld.const")
_MESSAGES = frozenset({"vprintf", "__assertfail", "printf"})
REAL_SASS = 512
"""bytes of machine code from which a kernel does more than return: those take 128 to 384 on sm_50 to sm_120"""
REAL_PRINTING_SASS = 2048
"""the same for a kernel that prints, as a message takes some 500 to 1,500 bytes"""


def is_idle(function: PtxFunction, statements: tuple[str, ...]) -> bool:
    """Whether the kernel does nothing but trap, print or return."""
    if not function.kernel or not function.body or not set(function.calls) <= _MESSAGES:
        return False
    return all(
        statements[number].partition(".")[0] in _HARMLESS or statements[number].startswith(_LOCAL)
        for number in function.statements
    )


def stubs(module: PtxModule, sass: dict[str, int]) -> dict[str, tuple[str, str]]:
    """Kernels of the module that are stubs, with the reason and the size of their machine code.

    ``sass``: bytes of machine code by kernel name, the largest of all architectures.
    """
    found = {}
    for function in module.functions:
        if not is_idle(function, module.statements):
            continue
        opcodes = {module.statements[number].partition(".")[0] for number in function.statements}
        does = "traps" if "trap" in opcodes else "prints" if function.calls else "returns"
        size = sass.get(function.name, 0)
        if size >= (REAL_PRINTING_SASS if does == "prints" else REAL_SASS):
            found[function.name] = f"its PTX only {does}, beside real machine code", f"{size} bytes of machine code"
        elif does == "traps":
            found[function.name] = f"its PTX only {does}", ""
    return found

"""Exit codes as Windows means them: unsigned 32-bit, with the name that Microsoft's [MS-ERREF] section 2.3 gives."""

from __future__ import annotations

import signal

_MEANINGS: dict[int, str] = {
    0x00000000: "success",
    0x40000015: "STATUS_FATAL_APP_EXIT: the program ended itself after a fatal error",
    0x80000003: "STATUS_BREAKPOINT: a breakpoint was reached (an assertion, or a Rust or C++ abort)",
    0xC0000005: "STATUS_ACCESS_VIOLATION: it read or wrote memory that is not its own (a crash)",
    0xC0000017: "STATUS_NO_MEMORY: out of memory",
    0xC000001D: "STATUS_ILLEGAL_INSTRUCTION: an instruction that this processor does not know",
    0xC0000022: "STATUS_ACCESS_DENIED: a DLL or file may not be opened",
    0xC000007B: "STATUS_INVALID_IMAGE_FORMAT: a DLL of the wrong kind (32-bit against 64-bit, or damaged)",
    0xC0000094: "STATUS_INTEGER_DIVIDE_BY_ZERO: division by zero",
    0xC00000FD: "STATUS_STACK_OVERFLOW: stack overflow",
    0xC0000135: "STATUS_DLL_NOT_FOUND: a DLL that it needs at start was not found",
    0xC0000138: "STATUS_ORDINAL_NOT_FOUND: a DLL lacks an ordinal that it needs at start",
    0xC0000139: "STATUS_ENTRYPOINT_NOT_FOUND: a DLL lacks a function that it needs at start",
    0xC000013A: "STATUS_CONTROL_C_EXIT: ended by Ctrl+C",
    0xC0000142: "STATUS_DLL_INIT_FAILED: a DLL refused to start",
    0xC0000374: "STATUS_HEAP_CORRUPTION: the heap was damaged",
    0xC0000409: "STATUS_STACK_BUFFER_OVERRUN: it ended itself at once (abort, or a damaged stack)",
    0xC0000417: "STATUS_INVALID_CRUNTIME_PARAMETER: a C runtime function was given a bad argument",
    0xC0000420: "STATUS_ASSERTION_FAILURE: an assertion failed",
    0xC06D007E: "a delay-loaded DLL was not found (delay-load helper, ERROR_MOD_NOT_FOUND)",
    0xC06D007F: "a delay-loaded DLL lacks a function (delay-load helper, ERROR_PROC_NOT_FOUND)",
    0xE06D7363: "a C++ exception that nobody caught",
    0xE0434352: ".NET exception that nobody caught",
}
# The loader ended the process before its own first instruction
LOADER_FAILURES = frozenset({0xC000007B, 0xC0000135, 0xC0000138, 0xC0000139, 0xC0000142})
DELAY_LOAD_FAILURES = frozenset({0xC06D007E, 0xC06D007F})
# What Wine leaves of the codes on POSIX: the low eight bits
_LOW = {code & 0xFF: code for code in (0xC0000005, 0xC000007B, 0xC0000135, 0xC0000139, 0xC0000409, 0xC06D007F)}
_LOW[0x7E] = 0xC06D007E


def unsigned(code: int) -> int:
    """The code as Windows shows it: unsigned 32-bit."""
    return code & 0xFFFFFFFF


def is_failure_status(code: int) -> bool:
    """Whether a Windows code is an NTSTATUS of severity error or an exception code, not the program's own."""
    return code >= 0xC0000000 or code == 0x80000003 or code == 0x40000015


def meaning(code: int | None, *, windows: bool, wine: bool = False) -> str:
    """What an exit code says, in words; never empty."""
    if code is None:
        return "nothing was started"
    if not windows and code < 0:
        try:
            return f"ended by signal {signal.Signals(-code).name}"
        except ValueError:
            return f"ended by signal {-code}"
    if code in _MEANINGS:
        return _MEANINGS[code]
    if wine and code in _LOW:
        full = _LOW[code]
        return f"returned {code}, which is also what Wine leaves of {full:#010X}: {_MEANINGS[full]}".replace("0X", "0x")
    if is_failure_status(code):
        return f"ended by Windows with status {code:#010x}"
    return f"the program returned {code}"


def wine_candidate(code: int | None) -> int | None:
    """The Windows status that an 8-bit code under Wine may stand for."""
    return None if code is None else _LOW.get(code)

"""The run report: from a run to JSON, Markdown and an issue; private things left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PureWindowsPath
from typing import Any

import msgspec

from zcheck import __version__
from zcheck.launch import exitcodes
from zcheck.launch.disk import sha256_of
from zcheck.launch.execute import Run
from zcheck.model.launch import (
    RUN_SCHEMA,
    Grade,
    HipInstallation,
    LoadedModule,
    Origin,
    Outcome,
    Plan,
    Program,
    RunReport,
    StackRecord,
    StreamReport,
)

# Shapes of well-known access tokens, and values that a line itself calls a secret
_SECRETS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|sk-[A-Za-z0-9_-]{16,}|AKIA[A-Z0-9]{16}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,})"
)
_NAMED_SECRET = re.compile(
    r"(?i)\b([\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|authorization))"
    r"(\s*[=:]\s*|\s+bearer\s+)(\"[^\"]*\"|'[^']*'|(?:bearer\s+)?[^\s,;]+)"
)
_HASHED_MODULES = 64
"""modules of ZLUDA, HIP and the program that are hashed for the report"""
# A refusal in good order: the program said itself that CUDA would not do, and ended with a code of its own
_ORDERLY = ("cuda", "cublas", "cudnn", "cufft", "cusparse", "zluda", "hip", "rocblas", "python")


def mask_secrets(text: str) -> str:
    """The text without access tokens, keys and passwords, as far as their shape or name tells."""
    return _NAMED_SECRET.sub(r"\1\2<secret>", _SECRETS.sub("<secret>", text))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in PureWindowsPath(_unwine(path)).parts)


def _unwine(path: str) -> str:
    r"""A path of this system for Wine's ``Z:\…``, others unchanged."""
    return path[2:].replace("\\", "/") if path[:3].lower() == "z:\\" else path


def origin(path: str, plan: Plan) -> Origin:
    """Where a loaded module came from; staged copies count as ZLUDA's."""
    here = _parts(path)
    if here in {_parts(file.target) for file in plan.stage}:
        return "zluda"
    for folder, name in ((plan.zluda_dir, "zluda"), (plan.hip_root, "hip"), (str(Path(plan.program).parent), "app")):
        parts = _parts(folder) if folder else ()
        if parts and here[: len(parts)] == parts:
            return name  # type: ignore[return-value]
    if {"system32", "syswow64", "winsxs"} & set(here) or here[:2] in (("\\", "usr"), ("\\", "lib"), ("\\", "lib64")):
        return "hip" if here[-1].startswith("amdhip64") else "system"
    return "other"


def _modules(run: Run, plan: Plan) -> tuple[LoadedModule, ...]:
    staged = {_parts(file.target): file.sha256 for file in plan.stage}
    result: dict[tuple[str, ...], LoadedModule] = {}
    for path in run.ending.modules:
        where = origin(path, plan)
        digest = staged.get(_parts(path))
        if digest is None and where in ("zluda", "app", "hip") and len(result) < _HASHED_MODULES:
            try:
                digest = sha256_of(Path(_unwine(path)))
            except OSError:
                digest = None
        result.setdefault(_parts(path), LoadedModule(PureWindowsPath(path).name, path, where, digest))
    return tuple(sorted(result.values(), key=lambda module: (module.origin, module.name.lower(), module.path)))


def _grade(run: Run, modules: tuple[LoadedModule, ...]) -> tuple[Grade, Outcome, str]:
    """The step of the evidence ladder that this run shows, whether it passed, and a note."""
    zluda = any(module.origin == "zluda" and module.name.lower() not in _LAUNCHERS for module in modules)
    code, first = run.exit.code, run.first_error
    if run.exit.interrupted:
        return ("loadable" if zluda else "detected"), "inconclusive", "it was interrupted, which proves nothing"
    if run.exit.timed_out:
        return ("loadable" if zluda else "detected"), "failed", ""
    if code == 0:
        if not zluda:
            note = "it ended well, but ZLUDA was not seen in the process: it may have run without the GPU"
            return "detected", "inconclusive", note
        if first is not None:
            return "safe-refusal", "failed", "it ended with 0 although an error was seen"
        return "functional", "passed", ""
    status = exitcodes.wine_candidate(code) if run.wine else code
    if status in exitcodes.LOADER_FAILURES and (first is None or first.stream == "launcher"):
        return "detected", "failed", ""
    crashed = code is not None and (code < 0 or exitcodes.is_failure_status(code))
    if not crashed and first is not None and first.rule.startswith(_ORDERLY):
        return "safe-refusal", "failed", ""
    return ("loadable" if zluda else "detected"), "failed", ""


_LAUNCHERS = ("zluda.exe", "zluda_with.exe", "zluda_redirect.dll")


def make_report(
    run: Run,
    plan: Plan,
    program: Program,
    hip: HipInstallation,
    *,
    zluda: str,
    zluda_files: dict[str, str],
    predicted: str = "",
    arguments: tuple[str, ...] | None = None,
) -> RunReport:
    """The full report of a run, not redacted; ``arguments`` only when the user wants them in it."""
    modules = _modules(run, plan)
    grade, outcome, note = _grade(run, modules)
    stack = StackRecord(
        zluda=zluda,
        release_hashes=plan.release_hashes,
        files=dict(sorted(zluda_files.items())),
        hip_sdk=hip.version,
        gpu=hip.gpu,
        gpu_name=hip.gpu_name,
        driver=hip.driver,
        gpu_index=hip.gpu_index,
        detection=hip.detection,
    )
    return RunReport(
        schema=RUN_SCHEMA,
        zcheck=__version__,
        id=run.id,
        started=run.started,
        ended=run.ended,
        program=program.name,
        program_path=program.path,
        program_sha256=program.sha256,
        machine=program.machine,
        arguments=arguments,
        stack=stack,
        strategy=plan.strategy or "",
        why=plan.why,
        environment={change.name: change.value for change in plan.environment},
        exit=run.exit,
        first_error=run.first_error,
        modules=modules,
        staging=run.staging,
        staging_done=run.staging_done,
        grade=grade,
        outcome=outcome,
        stdout=run.ending.stdout,
        stderr=run.ending.stderr,
        predicted=predicted,
        notes=tuple(filter(None, (note, *run.notes, *plan.warnings))),
    )


def redacted(report: RunReport, redact: Callable[[str], str], *, tails: bool = False) -> RunReport:
    """The report for sharing: every text through ``redact`` and without secrets; output only with ``tails``."""

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return mask_secrets(redact(value))
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        return [clean(item) for item in value] if isinstance(value, (list, tuple)) else value

    if not tails:
        report = msgspec.structs.replace(
            report, stdout=_without_tail(report.stdout), stderr=_without_tail(report.stderr)
        )
    cleaned = msgspec.convert(clean(msgspec.to_builtins(report)), RunReport)
    return msgspec.structs.replace(cleaned, redacted=True)


def _without_tail(stream: StreamReport) -> StreamReport:
    return msgspec.structs.replace(stream, tail=(), file="")


def json_schema() -> dict[str, Any]:
    """JSON schema of the run report (2020-12)."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(RunReport)}


def to_json(report: RunReport) -> str:
    """The report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("`", "'").strip()


def to_markdown(report: RunReport) -> str:
    """The report as Markdown, for people."""
    stack, end = report.stack, report.exit
    gpu = " ".join(filter(None, (stack.gpu_name, stack.gpu and f"({stack.gpu})"))) or "not known"
    code = "none" if end.code is None else f"{end.code} ({end.hex})"
    rows = [
        ("Program", f"{report.program}, SHA-256 `{report.program_sha256}`, {report.machine}"),
        ("ZLUDA", f"{stack.zluda} (file hashes: {stack.release_hashes})"),
        ("HIP SDK", stack.hip_sdk or "not known"),
        ("GPU", f"{gpu}{', driver ' + stack.driver if stack.driver else ''}"),
        ("Strategy", f"{report.strategy}: {'; '.join(report.why)}"),
        ("Predicted", report.predicted or "not analysed"),
        ("Exit", f"{code}: {end.meaning}, after {end.seconds:g} s{', timed out' if end.timed_out else ''}"),
        ("Evidence", f"{report.grade} ({report.outcome})"),
    ]
    lines = [f"# Run of {_cell(report.program)}: {report.outcome}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {text.replace('|', chr(92) + '|')} |" for name, text in rows]
    lines += ["", "## First error", ""]
    if report.first_error:
        first = report.first_error
        place = f"{first.stream}, line {first.line}" if first.line else first.stream
        lines += [f"`{_cell(first.text)}`", "", f"{first.meaning} ({place}; rule {first.rule})"]
    else:
        lines += ["None was seen."]
    lines += ["", "## Modules", ""]
    wanted = [module for module in report.modules if module.origin != "system"]
    lines += [f"- {module.origin}: `{_cell(module.name)}`" for module in wanted] or ["- none were seen"]
    if report.environment:
        lines += ["", "## Environment of the program", ""]
        lines += [f"- `{name}={_cell(value)}`" for name, value in report.environment.items()]
    if report.staging:
        lines += ["", "## Staged files", ""]
        lines += [
            f"- `{_cell(PureWindowsPath(file.target).name)}`: {file.state}{' (' + file.note + ')' if file.note else ''}"
            for file in report.staging
        ]
    if report.notes:
        lines += ["", "## Notes", "", *(f"- {_cell(note)}" for note in report.notes)]
    for name, stream in (("stdout", report.stdout), ("stderr", report.stderr)):
        if stream.tail:
            body = "\n".join(stream.tail).replace("```", "'''")
            lines += ["", f"## End of {name}", "", "```text", body, "```"]
    lines += ["", f"zcheck {report.zcheck}, {report.started}, run {report.id}", ""]
    return "\n".join(lines)


def to_issue(report: RunReport) -> str:
    """The report as the text of an issue: title line, what happened, the report folded away."""
    first = report.first_error.text if report.first_error else report.exit.meaning
    title = _cell(f"{report.program} on ZLUDA {report.stack.zluda}: {first}")[:120]
    return "\n".join(
        [
            f"**Title:** {title}",
            "",
            "### What happened",
            "",
            f"`{_cell(report.program)}` was started with ZLUDA {report.stack.zluda} (strategy {report.strategy}) and "
            f"{'passed' if report.outcome == 'passed' else 'did not pass' if report.outcome == 'failed' else 'ended'}: "
            f"`{_cell(first)}`.",
            "",
            "### What was expected",
            "",
            f"zcheck predicted: {report.predicted or 'nothing (not analysed)'}.",
            "",
            "<details><summary>Run report</summary>",
            "",
            to_markdown(report).rstrip(),
            "",
            "</details>",
            "",
        ]
    )

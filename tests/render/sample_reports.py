"""Reports made by hand for the render tests: small, complete, and one full of hostile names."""

from __future__ import annotations

from zcheck.model.base import Skipped
from zcheck.model.finding import Finding
from zcheck.model.report import (
    SCHEMA,
    WORKLOADS,
    Applications,
    DeviceCodeReport,
    DeviceEntry,
    EdgeReport,
    FunctionReport,
    ModuleReport,
    ReplayReport,
    Report,
    StackReport,
    WorkloadReason,
)
from zcheck.model.stack import Provision

V6, THEROCK = "v6/zluda-exe/6.4", "v6/zluda-exe/therock"
DATABASE = "2026-11-30"


def workload(**needs: str) -> dict[str, str]:
    """All families, ``not seen`` unless given."""
    return {family: needs.get(family.replace(" ", "_"), "not seen") for family in WORKLOADS}


def module(
    name: str, kind: str = "module", role: Provision = "bundle", stacks: tuple[str, ...] = (V6,), **more: object
) -> ModuleReport:
    """A module with the same role on all stacks."""
    fields: dict[str, object] = {
        "path": name if role == "bundle" else None,
        "machine": "x64",
        "size": 0 if role != "bundle" else 40_960,
        "version": "",
        "company": "",
    }
    fields.update(more)
    return ModuleReport(name=name, kind=kind, role=dict.fromkeys(stacks, role), **fields)  # type: ignore[arg-type]


def report(target: str, stacks: tuple[StackReport, ...], **more: object) -> Report:
    """A report with empty parts unless given."""
    fields: dict[str, object] = {
        "modules": (),
        "edges": (),
        "functions": (),
        "device_code": (),
        "host": None,
        "skipped": (),
        "entries": (target,),
    }
    fields.update(more)
    return Report(schema=SCHEMA, zcheck="0.1.0", database=DATABASE, target=target, stacks=stacks, **fields)  # type: ignore[arg-type]


CONV = Finding(
    id="DNN-CONV-NO-MIOPEN",
    severity="blocker",
    reach="called",
    confidence="high",
    title="Convolutions go through cuDNN, and this HIP SDK has no MIOpen",
    module="upscale.exe",
    library="cudnn9",
    functions=("cudnnConvolutionForward",),
    message="upscale.exe calls cudnnConvolutionForward; ZLUDA v6 passes it to MIOpen, which this HIP SDK lacks.",
    fix=(
        "Use the program's DirectML build if it has one.",
        "Install AMD's TheRock build of ROCm, which has MIOpen, and check again.",
    ),
    evidence=(
        'entry upscale.exe imports cudnn64_9.dll!cudnnConvolutionForward; at "import table"',
        "workload convolution required; by cudnnConvolutionForward",
    ),
    area="dnn",
    refs=("https://github.com/ROCm/TheRock",),
)
GEMM_LIMIT = Finding(
    id="BLAS-PARTIAL",
    severity="note",
    reach="use",
    confidence="high",
    title="A cuBLAS function works within a limit",
    module="upscale.exe",
    library="cublas",
    functions=("cublasGemmEx",),
    message="cublasGemmEx takes only some combinations of data types.",
    fix=("Nothing to do unless the program reports CUBLAS_STATUS_NOT_SUPPORTED.",),
    evidence=("entry upscale.exe imports cublas64_12.dll!cublasGemmEx",),
    area="blas",
)
SETUP = Finding(
    id="STACK-HIP-PATH",
    severity="setup",
    reach="init",
    confidence="medium",
    title="ZLUDA looks for the HIP libraries in HIP_PATH\\bin",
    module=None,
    library=None,
    functions=(),
    message="ZLUDA v6 looks for rocBLAS beside itself and in HIP_PATH\\bin, never on PATH.",
    fix=("Set HIP_PATH to the folder of the TheRock build.",),
    evidence=("stack zluda v6, hip_sdk therock",),
    area="host",
    first=True,
)


def blocked_conv() -> Report:
    """A program of its own that convolves: blocked on HIP SDK 6.4, setup on TheRock."""
    both = (V6, THEROCK)
    need = workload(convolution="required", gemm="required")
    reasons = (
        WorkloadReason("convolution", "required", ("cudnnConvolutionForward",)),
        WorkloadReason("gemm", "required", ("cublasGemmEx", "cublasSgemm_v2")),
    )
    return report(
        "upscale.exe",
        (
            StackReport(
                V6,
                "v6",
                "zluda-exe",
                "6.4",
                None,
                "blocked",
                "convolutions need MIOpen, which this HIP SDK lacks",
                need,
                reasons,
                (*CONV.fix, "Report the result of a run.", "Read the notes on convolution."),
                (CONV, GEMM_LIMIT),
            ),
            StackReport(
                THEROCK,
                "v6",
                "zluda-exe",
                "therock",
                None,
                "needs-setup",
                "predicted loadable once HIP_PATH is set",
                need,
                reasons,
                SETUP.fix,
                (SETUP, GEMM_LIMIT),
            ),
        ),
        modules=(
            module("upscale.exe", "entry", stacks=both, version="2.1.0", company="Example Ltd", sha256="ab" * 32),
            module("filters.dll", stacks=both, version="2.1.0"),
            module("cudnn64_9.dll", "vendor", "replaced", both, version="9.1.0.70", company="NVIDIA Corporation"),
            module("cublas64_12.dll", "vendor", "replaced", both),
            module("cufft64_11.dll", "vendor", "passed-through", both),
            module("nvcuda.dll", "vendor", "replaced", both),
            module("plugin_x.dll", "module", "missing", both),
            module("kernel32.dll", "system", "system", both),
        ),
        edges=(
            EdgeReport(
                "upscale.exe",
                "cudnn64_9.dll",
                "import",
                ("cudnnConvolutionForward", "cudnnCreate"),
                "application-directory",
                "high",
                "import table",
            ),
            EdgeReport(
                "upscale.exe",
                "cublas64_12.dll",
                "import",
                ("cublasGemmEx", "cublasSgemm_v2"),
                "application-directory",
                "high",
            ),
            EdgeReport("upscale.exe", "filters.dll", "import", ("run",), "application-directory", "high"),
            EdgeReport("filters.dll", "cufft64_11.dll", "delay", ("cufftExecC2C",), "application-directory", "high"),
            EdgeReport("filters.dll", "plugin_x.dll", "dynamic", (), "not-found", "low", ".rdata+0x1f20 (UTF-16)"),
            EdgeReport(
                "cudnn64_9.dll", "cublas64_12.dll", "import", ("cublasGemmEx",), "application-directory", "high"
            ),
            EdgeReport("cublas64_12.dll", "nvcuda.dll", "dynamic", ("cuInit",), "system32", "medium"),
            EdgeReport("upscale.exe", "kernel32.dll", "import", ("LoadLibraryW",), "system32", "high"),
        ),
        functions=(
            FunctionReport(
                "cudnn9",
                "cudnnConvolutionForward",
                "import",
                ("upscale.exe",),
                {V6: "library-missing", THEROCK: "implemented"},
                families=("convolution",),
            ),
            FunctionReport(
                "cublas",
                "cublasGemmEx",
                "import",
                ("upscale.exe", "cudnn64_9.dll"),
                {V6: "partial", THEROCK: "partial"},
                {V6: "compute types 32F and 16F only", THEROCK: "compute types 32F and 16F only"},
                ("gemm",),
            ),
            FunctionReport(
                "cublas",
                "cublasSgemm_v2",
                "import",
                ("upscale.exe",),
                {V6: "implemented", THEROCK: "implemented"},
                families=("gemm",),
            ),
            FunctionReport(
                "cufft",
                "cufftExecC2C",
                "delay",
                ("filters.dll",),
                {V6: "returns-error", THEROCK: "returns-error"},
                families=("fft",),
            ),
        ),
        device_code=(
            DeviceCodeReport(
                "upscale.exe",
                ".nv_fatb",
                (
                    DeviceEntry("ptx", "sm_86", "8.3", "lz4", 12, 20_480),
                    DeviceEntry("sass", "sm_86", "", "none", 12, 65_536),
                ),
                {"v6": ReplayReport(0, 12, 11, 1, 0, None, reasons=("fused: cp.async.bulk is not known to v6",))},
                containers=1,
            ),
        ),
        skipped=(Skipped("data/models.pak", "an archive of unknown format, not opened"),),
        frameworks=("OpenCV 4.9",),
        assumptions=("No PC was given: driver, HIP SDK and ZLUDA are taken to be installed as usual.",),
        evidence=CONV.evidence,
    )


def likely_gemm() -> Report:
    """Matrix products only, one stack with a GPU, a host with names in it."""
    stack = "v6-preview.69/zluda-exe/6.4/gfx1200"
    return report(
        "infer.exe",
        (
            StackReport(
                stack,
                "v6-preview.69",
                "zluda-exe",
                "6.4",
                "gfx1200",
                "likely",
                "predicted loadable; nothing found that stops it",
                workload(gemm="required"),
                (WorkloadReason("gemm", "required", ("cublasSgemm_v2",)),),
                ("Start it with zluda.exe -- infer.exe",),
                (
                    Finding(
                        "BLAS-HIPBLASLT",
                        "note",
                        "load",
                        "high",
                        "cuBLAS needs hipBLASLt's file too",
                        "infer.exe",
                        "cublas",
                        ("cublasSgemm_v2",),
                        "From v6-preview.58 on ZLUDA's cuBLAS loads hipblaslt.dll at start.",
                        ("Keep HIP SDK 6.4.2 or newer.",),
                        (r"entry infer.exe imports cublas64_12.dll!cublasSgemm_v2; at C:\Users\Zoë Quinn\infer.exe",),
                    ),
                ),
            ),
        ),
        modules=(
            module("infer.exe", "entry", stacks=(stack,)),
            module("cublas64_12.dll", "vendor", "replaced", (stack,)),
        ),
        edges=(
            EdgeReport("infer.exe", "cublas64_12.dll", "import", ("cublasSgemm_v2",), "application-directory", "high"),
        ),
        functions=(
            FunctionReport(
                "cublas", "cublasSgemm_v2", "import", ("infer.exe",), {stack: "implemented"}, families=("gemm",)
            ),
        ),
        host={
            "os_build": "26100",
            "user": "Zoë Quinn",
            "adapters": [
                {"index": 0, "name": "AMD Radeon RX 9060 XT", "gfx": "gfx1200", "driver_version": "32.0.21013.1000"}
            ],
        },
    )


def unknown_packed() -> Report:
    """A packed program."""
    return report(
        "setup.exe",
        (
            StackReport(
                V6,
                "v6",
                "zluda-exe",
                "6.4",
                None,
                "unknown",
                "the program is packed, its imports are not visible",
                workload(),
                (),
                ("Unpack the program with upx -d and check again.",),
                (
                    Finding(
                        "LIMIT-PACKED",
                        "risk",
                        "load",
                        "high",
                        "The program is packed",
                        "setup.exe",
                        None,
                        (),
                        "UPX hides the imports.",
                        ("Unpack it with upx -d.",),
                        ('limitation packed setup.exe; note "UPX"',),
                        limitation=True,
                    ),
                ),
            ),
        ),
        modules=(module("setup.exe", "entry"),),
        skipped=(Skipped("setup.exe", "packed with UPX"),),
    )


def no_cuda() -> Report:
    """Nothing CUDA."""
    return report(
        "viewer.exe",
        (
            StackReport(
                V6, "v6", "zluda-exe", "6.4", None, "no-cuda", "no use of CUDA was found", workload(), (), (), ()
            ),
        ),
        modules=(module("viewer.exe", "entry"), module("kernel32.dll", "system", "system")),
        edges=(EdgeReport("viewer.exe", "kernel32.dll", "import", ("ExitProcess",), "system32", "high"),),
    )


def applications() -> Applications:
    """A folder of programs."""
    return Applications(
        schema=SCHEMA,
        zcheck="0.1.0",
        database=DATABASE,
        target="tools",
        applications=(blocked_conv(), unknown_packed(), no_cuda()),
        skipped=(Skipped("broken.exe", "no PE signature"),),
    )


SAMPLES = {
    "blocked_conv": blocked_conv,
    "likely_gemm": likely_gemm,
    "unknown_packed": unknown_packed,
    "no_cuda": no_cuda,
    "applications": applications,
}

HOSTILE = (
    "<script>alert(1)</script>",
    '"onload="x',
    "'>'\"&amp;",
    "line\nbreak\r\nsecond",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202eexe.fdp",
    "\u2066iso\u2069late",
    "a|b|c",
    "`tick` ``two``",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "](javascript:alert(1))[x",
    "<!-- --> --> ]]>",
    "</style><style>",
    "{{7*7}}{% raw %}",
    "@octocat #1",
    "%%{init:{}}%%",
    "]:::x --> n9",
    "\udc80bad",
    "\x00nul",
    "</details>",
    '\\" ]; evil [label="',
    "```\nfence",
    "[bold]rich[/bold]",
    "\u200bzero\ufeff",
    "${x}",
    "C:\\Users\\eve\\x.exe",
)


def hostile() -> Report:
    """Every string that a file can choose is hostile."""
    joined = " ".join(HOSTILE)
    findings = tuple(
        Finding(
            "HOSTILE-1",
            "risk",
            "use",
            "low",
            f"t {text}",
            text,
            text,
            (text,),
            f"m {text}",
            (f"f {text}",),
            (f"e {text}",),
            refs=(text,),
        )
        for text in HOSTILE
    )
    return report(
        HOSTILE[0],
        (
            StackReport(
                V6,
                "v6",
                "zluda-exe",
                "6.4",
                None,
                "at-risk",
                joined,
                workload(),
                (WorkloadReason("gemm", "optional", HOSTILE),),
                HOSTILE,
                findings,
            ),
            StackReport(
                THEROCK, "v6", "zluda-exe", "therock", None, "at-risk", joined, workload(), (), HOSTILE, findings
            ),
        ),
        entries=(HOSTILE[0],),
        modules=tuple(module(text, version=text, company=text, machine=text, stacks=(V6, THEROCK)) for text in HOSTILE),
        edges=tuple(EdgeReport(HOSTILE[0], text, "dynamic", (text,), text, "low", text) for text in HOSTILE[1:]),
        functions=tuple(
            FunctionReport(text, text, "dynamic", (text,), {V6: "partial", THEROCK: "no-op"}, {V6: text})
            for text in HOSTILE
        ),
        device_code=(
            DeviceCodeReport(
                joined,
                joined,
                (DeviceEntry("ptx", joined, joined, joined, 1),),
                {"v6": ReplayReport(0, 1, 0, 1, 0, joined, reasons=HOSTILE)},
                notes=HOSTILE,
            ),
        ),
        host={"user": joined, "adapters": [{"name": joined, "gfx": joined, "driver_version": joined}]},
        skipped=tuple(Skipped(text, text) for text in HOSTILE),
        frameworks=HOSTILE,
        assumptions=HOSTILE,
    )


def big(count: int = 2_000) -> Report:
    """A graph of ``count`` modules, three edges each, in layers."""
    names = ["app.exe"] + [f"module_{i:04}.dll" for i in range(1, count)]
    edges = [
        EdgeReport(names[i], names[j], "import", (f"f{j}",), "application-directory", "high")
        for i in range(count)
        for j in sorted({min(count - 1, i * 4 + k) for k in (1, 2, 3, 4)})
        if j != i and j > i
    ]
    base = blocked_conv()
    findings = (CONV, GEMM_LIMIT)
    stack = StackReport(V6, "v6", "zluda-exe", "6.4", None, "blocked", "…", workload(), (), (), findings)
    return report(
        "app.exe",
        (stack,),
        modules=tuple(module(name, "entry" if name == "app.exe" else "module") for name in names),
        edges=tuple(edges),
        functions=base.functions[:1],
    )

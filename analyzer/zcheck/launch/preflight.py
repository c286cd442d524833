"""Checks that say no before anything is started: the program, the ZLUDA folder, the HIP SDK."""

from __future__ import annotations

from collections.abc import Container, Iterator

from zcheck.model.launch import Folder, HipInstallation, Program, Refusal, ReleaseFiles


def check_program(program: Program, release: ReleaseFiles, *, windows: bool) -> Iterator[Refusal]:
    """Programs that a launcher must not or cannot enter."""
    for sign in program.anti_cheat:
        yield Refusal(
            "anti-cheat",
            f"{sign}: injecting or replacing DLLs in a program under anti-cheat or copy protection can end in a ban; "
            "zcheck does not do it",
        )
    if program.batch:
        yield Refusal("batch", f"{program.name} is a batch file: name the program that it starts")
    if program.packaged:
        yield Refusal(
            "packaged", f"{program.name} is a Windows Store package: Windows lets no launcher start it this way"
        )
    if program.elevated:
        yield Refusal(
            "elevated", f"{program.name} asks for administrator rights; zcheck does not raise its own, and will not"
        )
    if program.kind == "pe" and program.machine != release.machine:
        hint = "its 32-bit launcher (32\\zluda.exe) is for PhysX only" if program.machine == "x86" else ""
        yield Refusal(
            "machine",
            f"{program.name} is a {program.machine} program, ZLUDA {release.release} enters {release.machine} "
            f"programs{'; ' + hint if hint else ''}",
        )
    if program.kind == "native" and windows and not program.batch:
        yield Refusal("not-a-program", f"{program.name} is no Windows program")


def check_zluda(release: ReleaseFiles, folder: Folder) -> tuple[str, list[Refusal]]:
    """State of the ZLUDA folder (verified, unknown, incomplete, wrong) and what to refuse because of it."""
    if not folder.files:
        reason = (
            f"{folder.path or 'no ZLUDA folder'}: none of ZLUDA {release.release}'s files is there; give --zluda-dir"
        )
        return "incomplete", [Refusal("no-zluda", reason)]
    missing = [file.name for file in release.files if folder.get(file.name) is None]
    if missing:
        reason = (
            f"{folder.path}: {', '.join(missing)} of ZLUDA {release.release} "
            f"{'is' if len(missing) == 1 else 'are'} missing, without which the program would not even start "
            "(0xC0000135). Unpack the release again; an antivirus program may have taken it"
        )
        return "incomplete", [Refusal("zluda-incomplete", reason)]
    wrong, known = [], 0
    for file in release.files:
        found = folder.get(file.name)
        if file.sha256 and found:
            known += 1
            if found.sha256 != file.sha256.lower():
                wrong.append(file.name)
    if wrong:
        reason = f"{folder.path}: {', '.join(wrong)} differ from the release's own SHA-256; unpack the release again"
        return "wrong", [Refusal("zluda-wrong-hash", reason)]
    other = [f.name for f in folder.files if f.machine not in (None, release.machine)]
    if other:
        return "wrong", [Refusal("zluda-machine", f"{folder.path}: {', '.join(other)} are not {release.machine} files")]
    return ("verified" if known == len(release.files) else "unknown"), []


# Almost every program that loads these calls them; others (cuDNN in a trainer of linear layers) may never be called
_CALLED = ("cublas", "cublasLt")


def check_hip(
    release: ReleaseFiles, hip: HipInstallation, loaded: Container[str], beside: Folder
) -> tuple[list[Refusal], list[str]]:
    """HIP files without which ZLUDA stops, from v6-preview.28 on with a dialog that waits for a click.

    ``loaded``: lower-case DLL names that the program loads; ``beside``: the ZLUDA folder, where ZLUDA looks first.
    Returns refusals, and warnings for libraries that may never be called.
    """
    refusals: list[Refusal] = []
    warnings: list[str] = []
    place = f"{hip.root}/bin" if hip.root else "a HIP SDK"
    runtimes = (*hip.files, *hip.driver_files)
    if release.hip_runtimes and not any(name.lower() in runtimes or beside.get(name) for name in release.hip_runtimes):
        text = (
            f"{' or '.join(release.hip_runtimes)} is neither beside ZLUDA nor in {place} nor in System32; install "
            "AMD's driver and the HIP SDK, or give --hip-dir"
        )
        refusals.append(Refusal("hip-runtime", text, anyway=True))
    for need in release.hip_needs if release.hip_path_read else ():
        if not any(name.lower() in loaded for name in need.dll_names):
            continue
        for names in need.hip:
            if any(name.lower().startswith("amdhip64") for name in names):
                continue
            if any(name.lower() in hip.files or beside.get(name) for name in names):
                continue
            text = (
                f"{' or '.join(names)}, which ZLUDA's {need.library} needs, is neither beside ZLUDA nor in {place}; "
                "ZLUDA stops with a dialog at its first use"
            )
            if need.library in _CALLED:
                refusals.append(Refusal("hip-library", f"{text}. Give --hip-dir, or install the HIP SDK", anyway=True))
            else:
                warnings.append(text)
    base = hip.gpu.split(":")[0]  # hipInfo adds features: gfx90a:sramecc+:xnack-
    if base and hip.tensile and base not in hip.tensile:
        text = (
            f"rocBLAS of this HIP SDK has no kernels for {base} (it has {', '.join(hip.tensile)}); every matrix "
            "product would fail"
        )
        refusals.append(Refusal("hip-tensile", text, anyway=True))
    return list(dict.fromkeys(refusals)), list(dict.fromkeys(warnings))

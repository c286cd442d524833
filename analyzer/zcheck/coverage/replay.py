"""Replay of what a ZLUDA release does with the device code of a program, image by image, explained.

Followed is the release build on Windows: selection of a PTX entry (vosen/ZLUDA zluda/src/impl/module.rs), then what
its parser and later passes make of it (``replay_parse``). What each release does stands in the coverage tables.

Not modelled: operands (save ``parse.ptx.TRAITS``), types of operands, what LLVM and the HIP runtime make of the result.
So *loadable* means: nothing known stops it.
"""

from __future__ import annotations

from functools import lru_cache

from zcheck.coverage.ptx_stub import stubs
from zcheck.coverage.replay_parse import Judge, ModuleOutcome, parse_outcome
from zcheck.model.device_code import (
    Container,
    ContainerReplay,
    DeviceCodeFacts,
    DeviceEntry,
    Fate,
    Image,
    KernelFate,
    PtxModule,
    ReleasePtx,
    Replay,
)

MAX_REASONS = 40


@lru_cache(maxsize=64)
def judge(release: ReleasePtx) -> Judge:
    """The judge of a release; kept, so that several files share its answers."""
    return Judge(release)


def replay(code: DeviceCodeFacts, release: ReleasePtx) -> Replay:
    """What the release does with all images of the file; ``code`` must have been read with its contents."""
    one = _Replayer(release, {container.offset: number for number, container in enumerate(code.containers)})
    containers = tuple(one.image(image) for image in code.images())
    reasons: dict[str, None] = {}
    for container in containers:
        if container.load_fails:
            reasons[container.load_fails] = None
        for fate in container.fates:
            if fate.fate in ("dropped", "lost"):
                reasons[fate.reason] = None
    failing = [c.load_fails for c in containers if c.load_fails and c.kernels]
    everything = bool(failing) and all(c.load_fails for c in containers if c.kernels)
    return Replay(
        release=release.release,
        containers=containers,
        kernels=sum(c.kernels for c in containers),
        loadable=sum(c.loadable for c in containers),
        dropped=sum(c.dropped for c in containers),
        stub=sum(c.stub for c in containers),
        empty=sum(c.empty for c in containers),
        lost=sum(c.lost for c in containers),
        load_fails=failing[0] if everything else None,
        reasons=tuple(reasons)[:MAX_REASONS],
        ptx_bytes=one.ptx_bytes,
        confidence=release.confidence,
    )


class _Replayer:
    def __init__(self, release: ReleasePtx, numbers: dict[int, int]) -> None:
        self.release = release
        self.numbers = numbers
        self.judge = judge(release)
        self.seen: dict[str, ModuleOutcome] = {}
        self.ptx_bytes = 0

    # --- choosing ---

    def image(self, image: Image) -> ContainerReplay:
        release = self.release
        sass, names = _expected(image)
        if release.selection == "no-fatbin" and not _is_loose_ptx(image):
            reason = f"{release.release} takes PTX texts only, no fatbins"
            return _all(image, names, "lost", reason, load_fails=reason)
        candidates, notes = self._candidates(image)
        chosen = self._choose(candidates)
        if chosen is None:
            return self._without_ptx(image, names, candidates, notes)
        entry, outcome = chosen
        assert entry.ptx is not None
        return self._result(image, entry, entry.ptx, outcome, names, sass, notes)

    def _candidates(self, image: Image) -> tuple[list[DeviceEntry], list[str]]:
        """PTX entries in the order in which the release tries them, and why others are not among them."""
        release, notes = self.release, []
        modules = image.modules
        if release.selection == "highest-sm" and image.linked is not None:
            # v3 takes the linked container first and links the prelinked ones together only when that has no PTX.
            modules = (image.linked, *image.modules)
        usable = []
        for container in modules:
            for entry in container.entries:
                if entry.kind != "ptx":
                    continue
                if entry.ptx is None:
                    notes.append(f"a PTX for {entry.arch} was not read: {entry.problem or 'no contents'}")
                elif entry.compression != "none" and entry.compression not in release.compression:
                    notes.append(f"the PTX for {entry.arch} is packed with {entry.compression}, which is not unpacked")
                elif any(
                    register.startswith(release.skipped_registers)
                    for function in entry.ptx.functions
                    for register in function.registers
                ):
                    notes.append(f"the PTX for {entry.arch} names {release.skipped_registers[0]} and is passed over")
                else:
                    usable.append(entry)
        if image.linked is not None and len(usable) > 1 and release.selection != "highest-sm":
            notes.append(f"one of {len(usable)} PTX texts of relocatable device code is taken, none is linked to it")
        if release.selection == "highest-sm":
            usable.sort(key=lambda entry: -_sm(entry.arch))
        elif release.selection == "last-valid":
            usable.reverse()
        return usable, notes

    def _choose(self, candidates: list[DeviceEntry]) -> tuple[DeviceEntry, ModuleOutcome] | None:
        best: tuple[DeviceEntry, ModuleOutcome] | None = None
        for entry in candidates:
            outcome = self.module(entry)
            if self.release.selection != "last-valid":
                return entry, outcome
            if self.release.unknown_statement == "module-empty" and (outcome.unread or outcome.invalid):
                # These previews pass over a text with anything unknown in it.
                continue
            if outcome.invalid == 0 and outcome.unread is None:
                return entry, outcome
            if best is None or _worth(outcome) < _worth(best[1]):
                best = (entry, outcome)
        return best

    def _without_ptx(
        self, image: Image, names: tuple[str, ...], candidates: list[DeviceEntry], notes: list[str]
    ) -> ContainerReplay:
        release = self.release
        if candidates:
            _, outcome = candidates[0], self.module(candidates[0])
            first = next(iter(outcome.dropped.values()), ("", ""))
            reason = outcome.unread or first[0] or "it is not parsed"
            return _all(image, names, "lost", f"no PTX is taken as a whole: {reason}", statement=first[1], notes=notes)
        if not any(entry.kind in ("ptx", "sass", "ltoir") for c in _containers(image) for entry in c.entries):
            return ContainerReplay(image.container)
        kinds = "no usable PTX" if notes else "no PTX"
        if not names and any(entry.kind == "ltoir" for c in _containers(image) for entry in c.entries):
            notes.append("only LTO-IR, whose kernels are not listed and which no release loads")
        if release.no_ptx == "load-fails":
            reason = f"{kinds}: the load fails"
            return _all(image, names, "lost", reason, load_fails=reason, notes=notes)
        return _all(image, names, "empty", f"{kinds}: an empty module is loaded, the look-up fails", notes=notes)

    def _result(
        self,
        image: Image,
        entry: DeviceEntry,
        ptx: PtxModule,
        outcome: ModuleOutcome,
        names: tuple[str, ...],
        sass: dict[str, int],
        notes: list[str],
    ) -> ContainerReplay:
        self.ptx_bytes += entry.size
        stub = stubs(ptx, sass)
        own = dict.fromkeys(ptx.kernels())
        empty_module = outcome.unread is not None and self.release.unread_text == "module-empty"
        load_fails = outcome.load_fails or (outcome.unread if not empty_module else None)
        fates = []
        loadable = 0
        for name in names:
            fate: Fate
            reason, statement = "", ""
            if name not in own:
                fate = "empty"
                reason = f"not in the PTX for {entry.arch} that is taken: the look-up fails"
            elif outcome.unread is not None:
                fate, reason = "lost", outcome.unread
            elif name in outcome.dropped:
                fate = "dropped"
                reason, statement = outcome.dropped[name]
            elif load_fails or outcome.lost:
                fate, reason = "lost", load_fails or outcome.lost or ""
            elif name in stub:
                fate = "stub"
                reason, statement = stub[name]
            else:
                loadable += 1
                continue
            fates.append(KernelFate(name, fate, reason, statement))
        counts = {kind: sum(1 for fate in fates if fate.fate == kind) for kind in ("dropped", "stub", "empty", "lost")}
        where, index = _place(image, entry, self.numbers)
        return ContainerReplay(
            container=image.container,
            chosen=index,
            chosen_container=where,
            kernels=len(names),
            loadable=loadable,
            load_fails=load_fails,
            invalid_directives=outcome.invalid,
            fates=tuple(fates),
            notes=tuple(notes) + outcome.notes,
            **counts,
        )

    # --- parsing ---

    def module(self, entry: DeviceEntry) -> ModuleOutcome:
        """What the release makes of the PTX of an entry."""
        assert entry.ptx is not None
        key = entry.sha256
        if not key or key not in self.seen:
            outcome = parse_outcome(entry.ptx, self.judge)
            if not key:
                return outcome
            self.seen[key] = outcome
        return self.seen[key]


def _worth(outcome: ModuleOutcome) -> float:
    """Number of invalid directives; a text that is not parsed counts as the largest number (``Module::empty``)."""
    return float("inf") if outcome.unread is not None else outcome.invalid


# --- helpers -------------------------------------------------------------------------------------------------------


def _containers(image: Image) -> tuple[Container, ...]:
    return (*image.modules, image.linked) if image.linked else image.modules


def _expected(image: Image) -> tuple[dict[str, int], tuple[str, ...]]:
    """Bytes of machine code by kernel, and all kernels that the image holds in any form, in order."""
    sass: dict[str, int] = {}
    names: dict[str, None] = {}
    for container in _containers(image):
        for entry in container.entries:
            names.update(dict.fromkeys(entry.kernels))
            for name, size in zip(entry.kernels, entry.code, strict=False):
                sass[name] = max(size, sass.get(name, 0))
    return sass, tuple(names)


def _is_loose_ptx(image: Image) -> bool:
    entries = image.modules[0].entries if image.modules else ()
    return len(entries) == 1 and entries[0].kind == "ptx" and entries[0].header == entries[0].offset


def _place(image: Image, entry: DeviceEntry, numbers: dict[int, int]) -> tuple[int, int]:
    """Number of the container that the entry is in, and its index there."""
    for container in image.modules:
        for index, other in enumerate(container.entries):
            if other is entry:
                return numbers.get(container.offset, image.container), index
    linked = image.linked.entries if image.linked else ()
    return image.container, next((index for index, other in enumerate(linked) if other is entry), 0)


def _sm(arch: str) -> int:
    digits = "".join(char for char in arch if char.isdigit())
    return int(digits) if digits else 0


def _all(
    image: Image,
    names: tuple[str, ...],
    fate: Fate,
    reason: str,
    *,
    statement: str = "",
    load_fails: str | None = None,
    notes: list[str] | None = None,
) -> ContainerReplay:
    return ContainerReplay(
        container=image.container,
        kernels=len(names),
        lost=len(names) if fate == "lost" else 0,
        empty=len(names) if fate == "empty" else 0,
        load_fails=load_fails,
        fates=tuple(KernelFate(name, fate, reason, statement) for name in names),
        notes=tuple(notes or ()),
    )

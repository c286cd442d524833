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
        notes: list[str] = []
        if release.selection == "highest-sm" and image.linked is not None:
            return self._linked(image, image.linked, names, sass)
        candidates = self._candidates(image.modules, notes)
        if image.linked is not None and len(candidates) > 1:
            notes.append(
                f"one of {len(candidates)} PTX texts of relocatable device code is taken, none is linked to it"
            )
        chosen = self._choose(candidates)
        if chosen is None:
            return self._without_ptx(image, names, candidates, notes)
        return self._result(image, [chosen], names, sass, notes)

    def _linked(self, image: Image, linked: Container, names: tuple[str, ...], sass: dict[str, int]) -> ContainerReplay:
        """Relocatable device code on v3 and the fork (zluda/src/impl/module.rs, ``Version2``).

        The linked container when it has PTX, else the best PTX of every prelinked one, linked together; each must
        have one.
        """
        notes: list[str] = []
        taken = []
        candidates = self._candidates((linked,), notes)
        if chosen := self._choose(candidates):
            return self._result(image, [chosen], names, sass, notes)
        for container in image.modules:
            chosen = self._choose(self._candidates((container,), notes))
            if chosen is None:
                return self._without_ptx(image, names, [], notes)
            taken.append(chosen)
        if not taken:
            return self._without_ptx(image, names, [], notes)
        return self._result(image, taken, names, sass, notes)

    def _candidates(self, containers: tuple[Container, ...], notes: list[str]) -> list[DeviceEntry]:
        """PTX entries in the order in which the release tries them; why others are not among them goes to ``notes``."""
        release = self.release
        usable = []
        for container in containers:
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
        if release.selection == "highest-sm":
            usable.sort(key=lambda entry: -_sm(entry.arch))
        elif release.selection == "last-valid":
            usable.reverse()
        return usable

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
            reason = kinds
            return _all(image, names, "lost", reason, load_fails=reason, notes=notes)
        return _all(image, names, "empty", f"{kinds}: an empty module is loaded, the look-up fails", notes=notes)

    def _result(
        self,
        image: Image,
        taken: list[tuple[DeviceEntry, ModuleOutcome]],
        names: tuple[str, ...],
        sass: dict[str, int],
        notes: list[str],
    ) -> ContainerReplay:
        """The fates of the image's kernels when these PTX entries are compiled together."""
        own: dict[str, ModuleOutcome] = {}
        stub: dict[str, tuple[str, str]] = {}
        load_fails = None
        for entry, outcome in taken:
            assert entry.ptx is not None
            self.ptx_bytes += entry.size
            own.update(dict.fromkeys(entry.ptx.kernels(), outcome))
            stub.update(stubs(entry.ptx, sass))
            unread = outcome.unread if self.release.unread_text != "module-empty" else None
            load_fails = load_fails or outcome.load_fails or unread
        first = taken[0][0]
        fates = []
        for name in names:
            fate: Fate
            reason, statement = "", ""
            if name not in own:
                fate = "empty"
                reason = f"not in the PTX for {first.arch} that is taken: the look-up fails"
            elif own[name].unread is not None:
                fate, reason = "lost", own[name].unread or ""
            elif name in own[name].dropped:
                fate = "dropped"
                reason, statement = own[name].dropped[name]
            elif load_fails or own[name].lost:
                fate, reason = "lost", load_fails or own[name].lost or ""
            elif name in stub:
                fate = "stub"
                reason, statement = stub[name]
            else:
                continue
            fates.append(KernelFate(name, fate, reason, statement))
        counts = {kind: sum(1 for fate in fates if fate.fate == kind) for kind in ("dropped", "stub", "empty", "lost")}
        where, index = _place(image, first, self.numbers)
        # Where a failed translation ends in an empty module, the load itself succeeds.
        fails = load_fails if self.release.later_effect != "module-empty" else None
        return ContainerReplay(
            container=image.container,
            chosen=index,
            chosen_container=where,
            kernels=len(names),
            loadable=len(names) - len(fates),
            load_fails=fails,
            invalid_directives=sum(outcome.invalid for _, outcome in taken),
            fates=tuple(fates),
            notes=tuple(dict.fromkeys([*notes, *(note for _, outcome in taken for note in outcome.notes)])),
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

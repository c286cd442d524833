"""Names met in a file, sorted into evidence and mere mentions.

A name is evidence (*dynamic*) only with its loader: the file imports LoadLibrary and GetProcAddress (or P/Invokes or
reaches them through .NET), and a function's library is named in it (as a DLL name, an import, or cuGetProcAddress for
the driver). What the file imports or exports under that name, what a linked-in runtime brings along, and names inside
longer text are no evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from zcheck.model.base import Confidence, Problem
from zcheck.model.facts import PeFacts
from zcheck.model.hidden import (
    ChildProgram,
    DllHow,
    DynamicDll,
    DynamicFunction,
    Encoding,
    FunctionHow,
    HiddenFacts,
    LinkedRuntime,
    LoaderFacts,
    NameMention,
    PInvoke,
    Place,
)
from zcheck.parse import fingerprint
from zcheck.parse.names import NameTables
from zcheck.parse.names_tokens import Token

_LOAD = re.compile(
    r"Load(?:Library(?:Ex)?[AW]?|PackagedLibrary)|LdrLoadDll|SDL_LoadObject|g_module_open|uv_dlopen|dlopen"
)
_LOOK_UP = re.compile(r"GetProcAddress|LdrGetProcedureAddress(?:Ex)?|SDL_LoadFunction|g_module_symbol|uv_dlsym|dlsym")
_HOOK = re.compile(r"_*(?:delayLoadHelper2?|pfnDliNotifyHook2?|pfnDliFailureHook2?|FUnloadDelayLoadedDLL2)(?:@\d+)?")
_FORMAT = re.compile(r"%[0-9]*(?:ll|l|z)?[diu]|%s")
_VERSIONED = re.compile(r"([A-Za-z]+)(?:32|64)_?")
_INSIDE = re.compile(
    r"(?:__)?(?:cu[A-Z]|cuda[A-Z]|cublas|cudnn[A-Z]|cufft[A-Z]|curand[A-Z]|cusparse[A-Z]|cusolver|nvml[A-Z]|nvrtc[A-Z])"
)
_RUNTIME_DLLS = frozenset({"nvcuda.dll", "nvcudart_hybrid64.dll"})
_MOST = 4096
"""names of one sort kept for a report"""
_RANK: dict[Confidence, int] = {"low": 0, "medium": 1, "high": 2}


def family(library: str) -> str:
    """The library without its major version where only the version differs (cudnn8 and cudnn9 → cudnn)."""
    return "cudnn" if library.startswith("cudnn") else library


class Sorter:
    """Takes tokens and metadata of one file, gives HiddenFacts."""

    def __init__(self, name: str, facts: PeFacts | None, names: NameTables) -> None:
        self.name, self.facts, self.names = name, facts, names
        self.words: dict[str, Token] = {}
        self.shapes: dict[str, tuple[str, Token]] = {}
        self.files: dict[str, Token] = {}
        self.bare: dict[str, Token] = {}
        self.stems: dict[str, Token] = {}
        self.fragments: dict[str, Token] = {}
        self.children: dict[str, Token] = {}
        self.p_invokes: tuple[PInvoke, ...] = ()
        self.managed_loads: tuple[str, ...] = ()
        self.hooks: tuple[str, ...] = ()
        self.loader_functions: tuple[DynamicFunction, ...] = ()
        self.offsets: dict[int, str] = {}
        self.runtimes: tuple[LinkedRuntime, ...] = ()
        self.mentions: dict[tuple[str, bool], NameMention] = {}
        imports = facts.imports if facts else ()
        self.imported_dlls = {dll.dll.lower() for dll in imports}
        symbols = [s.name for dll in imports for s in dll.symbols if s.name]
        self.symbols = set(symbols)
        self.tabled = Counter(symbols)  # how often a name stands in the file's own tables
        self.counts: Counter[str] = Counter()
        self.exported = {export.name for export in facts.exports if export.name} if facts else set()
        self.tabled.update(self.exported)
        version = facts.version if facts else None
        self.own = {name.lower(), (facts.export_name.lower() if facts else "")}
        self.own.add(version.original_name.lower() if version else "")

    # --- taking -----------------------------------------------------------------------------------------------------

    def take(self, tokens: Iterable[Token]) -> None:
        """Sort the strings of a file in; then the runtimes linked into it are known."""
        for token in tokens:
            if token.kind == "word":
                self._take_word(token)
            elif token.kind == "fragment":
                self.fragments.setdefault(token.text, token)
            elif token.text.lower().endswith(".exe"):
                if token.whole:
                    self.children.setdefault(token.text.lower(), token)
            else:
                token = self._without_tail_of_number(token)
                _keep(self.files, token.text.lower(), token)
        whole = [name for name, token in self.words.items() if token.whole]
        files = {name for name, token in self.files.items() if token.whole}
        self.runtimes = fingerprint.recognise(whole, self.names, self.exported, files)

    def _without_tail_of_number(self, token: Token) -> Token:
        """The DLL name without letters that are really the last bytes of a constant in front of it.

        Compilers align string literals of eight bytes and more to four or eight.
        """
        if token.utf16 or token.joined or "%" in token.text or self.names.library_of_dll(token.text):
            return token
        for extra in (1, 2, 3):
            text = token.text[extra:]
            if (token.offset + extra) % 4 == 0 and (
                self.names.library_of_dll(text) or text.lower() in self.own or text.lower() in self.imported_dlls
            ):
                return token._replace(text=text, offset=token.offset + extra)
        return token

    def take_p_invokes(self, p_invokes: tuple[PInvoke, ...], managed_loads: tuple[str, ...]) -> None:
        """Imports from .NET metadata, and the framework's own loading functions that it refers to."""
        self.p_invokes, self.managed_loads = p_invokes, managed_loads

    def take_loader(self, functions: tuple[DynamicFunction, ...]) -> None:
        """Functions whose slot of a linked-in loader is read."""
        self.loader_functions += functions

    def name_offsets(self) -> dict[int, str]:
        """File offset → name of each whole ASCII string that a runtime could bring along."""
        return self.offsets

    def _take_word(self, token: Token) -> None:
        text = token.text
        if text in self.names.functions or text in self.names.all_fingerprint_names:
            _keep(self.words, text, token)
            if token.whole:
                self.counts[text] += 1
                if not token.utf16:
                    self.offsets[token.offset] = text
        elif library := self.names.library_of_shape(text):
            if text not in self.shapes or (token.whole and not self.shapes[text][1].whole):
                self.shapes[text] = (library, token)
        elif token.whole:
            lower = text.lower()
            versioned = _VERSIONED.fullmatch(lower)
            if self.names.library_of_bare(text):
                _keep(self.bare, lower, token)
            elif lower in self.names.stems or (versioned and versioned.group(1) in self.names.stems):
                _keep(self.stems, lower, token)
        elif token.joined:
            self._take_joined(token)

    def _take_joined(self, token: Token) -> None:
        """Known names inside identifiers that run into each other."""
        for match in _INSIDE.finditer(token.text):
            for end in range(min(len(token.text), match.start() + 64), match.start() + 5, -1):
                name = token.text[match.start() : end]
                if name in self.names.functions:
                    _keep(self.words, name, token._replace(text=name, offset=token.offset + match.start()))
                    break

    # --- giving -----------------------------------------------------------------------------------------------------

    def result(self, scanned: int, skipped: int, problems: tuple[Problem, ...]) -> HiddenFacts:
        """Everything sorted, in order of names."""
        brought = fingerprint.names_of(self.runtimes, self.names)
        loader = self._loader(brought)
        dlls, others = self._dlls(loader)
        functions, subtracted = self._functions(loader, dlls, brought)
        return HiddenFacts(
            name=self.name,
            dlls=tuple(dlls[key] for key in sorted(dlls))[:_MOST],
            functions=tuple(functions[key] for key in sorted(functions))[:_MOST],
            mentions=tuple(self.mentions[key] for key in sorted(self.mentions))[:_MOST],
            other_dlls=tuple(others[key] for key in sorted(others))[:_MOST],
            runtimes=self.runtimes,
            loader=loader,
            p_invokes=self.p_invokes[:_MOST],
            children=tuple(
                ChildProgram(token.text, self.place(token))
                for key, token in sorted(self.children.items())
                if key not in self.own
            )[:_MOST],
            subtracted=subtracted,
            scanned=scanned,
            skipped=skipped,
            problems=problems,
        )

    def place(self, token: Token) -> Place:
        """Section and offsets of a string."""
        encoding: Encoding = "utf-16" if token.utf16 else "ascii"
        for section in self.facts.sections if self.facts else ():
            if section.offset <= token.offset < section.offset + section.size:
                return Place(section.name, token.offset - section.offset, token.offset, encoding)
        facts = self.facts
        if facts is not None and facts.overlay_size and token.offset >= facts.overlay_offset:
            return Place("overlay", token.offset - facts.overlay_offset, token.offset, encoding)
        return Place("file", token.offset, token.offset, encoding)

    def _loader(self, brought: frozenset[str]) -> LoaderFacts:
        loads = [name for name in sorted(self.symbols) if _LOAD.fullmatch(name)]
        loads += [entry.function for entry in self.p_invokes if _LOAD.fullmatch(entry.function)]
        loads += self.managed_loads
        look_up = any(_LOOK_UP.fullmatch(name) for name in self.symbols) or bool(self.managed_loads)
        look_up = look_up or any(_LOOK_UP.fullmatch(entry.function) for entry in self.p_invokes)
        driver = any(
            name in self.symbols or (name in self.words and self.words[name].whole and name not in brought)
            for name in ("cuGetProcAddress", "cuGetProcAddress_v2")
        )
        hooks = {name for name in self.symbols | self.exported if _HOOK.fullmatch(name)} | set(self.hooks)
        return LoaderFacts(tuple(dict.fromkeys(loads)), look_up, driver, tuple(sorted(hooks)))

    def _dlls(self, loader: LoaderFacts) -> tuple[dict[str, DynamicDll], dict[str, DynamicDll]]:
        dlls: dict[str, DynamicDll] = {}
        others: dict[str, DynamicDll] = {}
        for row, entry in enumerate(self.p_invokes, 1):
            dll = _windows_name(entry.dll)
            library = self.names.library_of_dll(dll)
            if "/" in dll or (not library and ".so" in dll):
                continue  # a library of another system
            place = Place("ImplMap", row, 0, "metadata")
            target = dlls if library else others
            target.setdefault(dll.lower(), DynamicDll(dll, library, "p-invoke", "high", place))
        own_names = self._own_driver_names()
        for lower, token in self.files.items():
            if lower in self.own or lower in self.imported_dlls:
                continue
            dll, how, confidence = self._dll_name(token)
            library = self.names.library_of_dll(dll.replace("*", "1"))
            if not library and token.joined:
                continue
            place = self.place(token)
            if library and self.runtimes and lower in _RUNTIME_DLLS and not (library == "nvcuda" and own_names):
                dlls[lower] = DynamicDll(dll, library, "runtime", "high", place)
            elif why := self._no_load(token, place, loader):
                if library:
                    self.mentions[dll, True] = NameMention(dll, library, why, place, True)
            elif library or how != "format":
                (dlls if library else others).setdefault(
                    dll.lower(),
                    DynamicDll(dll, library, how, confidence, place),
                )
        for lower, token in self.bare.items():
            dll = token.text + ".dll"
            if lower + ".dll" in dlls or lower + ".dll" in self.imported_dlls or lower + ".dll" in self.own:
                continue
            place, library = self.place(token), self.names.library_of_dll(dll)
            if why := self._no_load(token, place, loader):
                self.mentions[dll, True] = NameMention(dll, library, why, place, True)
            else:
                dlls[lower + ".dll"] = DynamicDll(dll, library, "no-suffix", "medium", place)
        if loader.load_library:
            self._from_fragments(dlls)
        return dlls, others

    def _own_driver_names(self) -> bool:
        """True when the file looks up driver functions that no linked-in runtime knows."""
        brought = fingerprint.names_of(self.runtimes, self.names)
        return any(
            token.whole and name not in brought and self.names.functions.get(name) == "nvcuda"
            for name, token in self.words.items()
        )

    def _dll_name(self, token: Token) -> tuple[str, DllHow, Confidence]:
        """The name as the loader gets it, how it stands in the file, and how sure that is."""
        text = token.text
        if "%" in text:
            return re.sub(r"\*+", "*", _FORMAT.sub("*", text)), "format", "medium"
        if token.joined:
            for _, pattern in self.names.dll_ends:
                if match := pattern.search(text):
                    return match.group(), "exact", "low"
            return text, "exact", "low"
        return (text, "list", "medium") if token.listed else (text, "exact", "high")

    def _no_load(self, token: Token, place: Place, loader: LoaderFacts) -> str:
        """Why this name is a mention only, or an empty string."""
        if not (token.whole or token.joined):
            return "part of a longer text"
        if place.section == ".rsrc":
            return "in resources"
        if not loader.load_library:
            return "the file imports no function that loads a DLL"
        return ""

    def _from_fragments(self, dlls: dict[str, DynamicDll]) -> None:
        """Names joined at run time: ``cublas64_`` + digits, or ``cudart`` and ``64_110``."""
        versions = [text.removesuffix(".dll") for text in sorted(self.fragments) if not text.startswith("64_%")]
        whole = {found.library for found in dlls.values()}
        whole |= {self.names.library_of_dll(dll) for dll in self.imported_dlls}
        for lower, token in sorted(self.stems.items()):
            versioned = _VERSIONED.fullmatch(lower)
            stem = versioned.group(1) if versioned else lower
            library = self.names.stems.get(stem, "")
            if library in whole:
                continue  # the whole name stands in the file or is imported: the stem says nothing more
            parts = (token.text, *(() if versioned else versions))
            confidence: Confidence = "medium" if versioned else "low"
            if versioned:
                dll = f"{lower.rstrip('_')}_*.dll"
            elif len(versions) == 1:
                dll = f"{stem}{versions[0]}.dll"
            elif self.fragments:
                dll = f"{stem}64_*.dll"
            else:
                continue
            if self.names.library_of_dll(dll.replace("*", "1")) and dll not in self.imported_dlls:
                place = self.place(token)
                dlls.setdefault(dll, DynamicDll(dll, library, "fragments", confidence, place, parts))

    def _functions(
        self, loader: LoaderFacts, dlls: dict[str, DynamicDll], brought: frozenset[str]
    ) -> tuple[dict[tuple[str, str], DynamicFunction], int]:
        functions = {(f.name, f.symbol): f for f in self.loader_functions}
        named = {family(dll.library): dll.library for dll in dlls.values() if dll.how != "runtime"}
        for dll in self.imported_dlls:
            if library := self.names.library_of_dll(dll):
                named.setdefault(family(library), library)
        if loader.cu_get_proc_address:
            named.setdefault("nvcuda", "nvcuda")
        for row, entry in enumerate(self.p_invokes, 1):
            if library := self.names.library_of_dll(_windows_name(entry.dll)):
                place = Place("ImplMap", row, 0, "metadata")
                functions[entry.function, ""] = DynamicFunction(entry.function, library, "p-invoke", "high", place)
        subtracted = 0
        known = [(name, self.names.functions.get(name, ""), token, False) for name, token in self.words.items()]
        shaped = [(name, library, token, True) for name, (library, token) in self.shapes.items()]
        for name, library, token, by_shape in known + shaped:
            if name in brought:
                subtracted += 1
                continue
            if not library or name in self.symbols or (name, "") in functions:
                continue
            if name in self.exported and self.counts[name] <= self.tabled[name]:
                continue
            place = self.place(token)
            if not (token.whole or token.joined):
                why = "part of a longer text"
            elif not loader.by_name and not (library == "nvcuda" and loader.cu_get_proc_address):
                why = "the file imports no function that looks up names"
            elif family(library) not in named:
                why = f"no DLL of {library} is named in the file"
            else:
                how: FunctionHow = "joined" if not token.whole else "shape" if by_shape else "string"
                confidence: Confidence = "low" if not token.whole else "medium" if by_shape else "high"
                functions[name, ""] = DynamicFunction(name, named[family(library)], how, confidence, place)
                continue
            self.mentions[name, False] = NameMention(name, library, why, place)
        return functions, subtracted


def _windows_name(dll: str) -> str:
    """A module reference as Windows gets it: with an ending."""
    return dll if dll.lower().endswith((".dll", ".exe", ".so")) else dll + ".dll"


def _keep(table: dict[str, Token], key: str, token: Token) -> None:
    """Keep the better of two places of a name: whole before joined before inside a text, else the first."""
    old = table.get(key)
    if old is None or (token.whole, token.joined) > (old.whole, old.joined):
        table[key] = token

"""The Authenticode signer, by LIEF: on demand only, as it reads the whole file and takes half a second to import."""

from __future__ import annotations

from pathlib import Path

MAX_BYTES = 256 * 1024 * 1024
"""size up to which a file is given to LIEF, which takes about twice a file's size in memory"""


def signer(path: Path) -> str | None:
    """Common name of the certificate that signed the file, or None when it is unsigned, too large or unreadable.

    The name is read, not trusted: no certificate chain is validated.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
    except OSError:
        return None
    import lief

    lief.logging.disable()
    config = lief.PE.ParserConfig()
    config.parse_exports = config.parse_imports = config.parse_reloc = config.parse_rsrc = False
    config.parse_signature = True
    try:
        binary = lief.PE.parse(str(path), config)
    except (RuntimeError, ValueError, UnicodeError):
        return None
    if binary is None:
        return None
    for signature in binary.signatures:
        for item in signature.signers:
            certificate = item.cert
            if certificate is None:
                continue
            name = _common_name(str(certificate.subject))
            if name:
                return name
    return None


def _common_name(subject: str) -> str | None:
    """The CN of a distinguished name as LIEF prints it: ``C=US, O=Example, CN=Example\\, Inc.``."""
    parts = subject.replace("\\,", "\0").split(",")
    for part in parts:
        key, _, value = part.strip().partition("=")
        if key.upper() == "CN":
            return value.replace("\0", ",").strip()
    return None

"""The user's PC: adapters, driver, HIP SDK, ZLUDA folder and conflicts, from files alone; works on a faked root.

``read_host`` reads a PC or a folder that stands for one, ``load_host`` a saved report; ``host_evidence`` and
``stack_overrides`` turn it into what a verdict needs. Keys of all lines: ``zcheck.host.keys``.
"""

from zcheck.host.evidence import StackOverrides, host_evidence, stack_overrides
from zcheck.host.named_gpu import named_gpu_facts
from zcheck.host.reader import HIPINFO_TIMEOUT, read_host
from zcheck.host.saved import load_host, people

__all__ = [
    "HIPINFO_TIMEOUT",
    "StackOverrides",
    "host_evidence",
    "load_host",
    "named_gpu_facts",
    "people",
    "read_host",
    "stack_overrides",
]

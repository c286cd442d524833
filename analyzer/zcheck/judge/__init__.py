"""Findings to a verdict for one stack, and the report.

``judge(...)`` decides one stack; ``build_report(...)`` puts the report of one entry together; ``exit_code(...)`` says
how the process ends (design section 6).
"""

from zcheck.judge.exit_code import FAIL_ON, exit_code
from zcheck.judge.report import Judged, build_report
from zcheck.judge.verdict import judge

__all__ = ["FAIL_ON", "Judged", "build_report", "exit_code", "judge"]

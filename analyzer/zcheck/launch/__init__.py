"""Runs a program through ZLUDA: plan (pure), apply, run, record, undo; leaves nothing behind."""

from zcheck.launch.demand import Demand, demand
from zcheck.launch.execute import Refused, execute, refuse
from zcheck.launch.firsterror import parse_rules
from zcheck.launch.plan import Request, Situation, System, make_plan
from zcheck.launch.records import default_data_dir, record, recorded_reports, recorded_runs
from zcheck.launch.report import json_schema, make_report, redacted, to_issue, to_json, to_markdown
from zcheck.launch.staging import target_folders
from zcheck.launch.undo import undo

__all__ = [
    "Demand",
    "Refused",
    "Request",
    "Situation",
    "System",
    "default_data_dir",
    "demand",
    "execute",
    "json_schema",
    "make_plan",
    "make_report",
    "parse_rules",
    "record",
    "recorded_reports",
    "recorded_runs",
    "redacted",
    "refuse",
    "target_folders",
    "to_issue",
    "to_json",
    "to_markdown",
    "undo",
]

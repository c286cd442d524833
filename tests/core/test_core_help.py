"""The verbs' help speaks with one voice: whoever knows one verb's options knows the next one's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from zcheck.cli.app import app


def _commands(command: Any, name: str = "zcheck") -> Iterator[tuple[str, Any]]:
    yield name, command
    for sub, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, f"{name} {sub}")


COMMANDS = dict(_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_options_look_alike_over_all_verbs(name: str) -> None:
    for param in COMMANDS[name].params:
        text = (getattr(param, "help", None) or "").strip()
        if text and "completion" not in (param.name or ""):
            assert text.endswith("."), f"{name} {param.name}: {text!r} is no sentence"
        if "--format" in param.opts:
            assert "-f" in param.opts and param.metavar == "FORMAT", f"{name} --format"
        if param.param_type_name == "option" and not param.is_flag and param.name != "version":
            assert param.metavar or param.is_bool_flag, f"{name} {param.opts[0]} has no word for its value"


@pytest.mark.parametrize(("asked", "meant"), [("cublasgemmex", "cublasGemmEx"), ("DNN-CONV", "DNN-CONV-NO-MIOPEN")])
def test_a_misspelt_name_is_put_right(asked: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    from zcheck.cli.app import run

    assert run(["explain", asked]) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


def test_what_only_hipify_knows_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    from zcheck.cli.app import run

    assert run(["explain", "cuGraphicsD3D11RegisterResource"]) == 0
    assert "no release of ZLUDA exports it" in capsys.readouterr().out


def test_a_runtime_function_is_told_by_its_driver_calls(capsys: pytest.CaptureFixture[str]) -> None:
    from zcheck.cli.app import run

    assert run(["explain", "cudaMemcpy2DAsync"]) == 0
    out = capsys.readouterr().out
    assert "cuMemcpy2DAsync_v2 (returns-error)" in out and "no release of ZLUDA exports" not in out

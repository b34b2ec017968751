"""``python -m tokenwise_rl.conformance check gae mypackage.advantages:gae --profile verl-0.9.1``"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from . import cases, diagnose, operations, properties, run
from ._report import table


def _function(path: str) -> Any:
    module, _, name = path.partition(":")
    if not name:
        raise SystemExit(f"{path}: expected module:function")
    sys.path.insert(0, "")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _pairs(given: Sequence[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise SystemExit(f"{text}: expected name=value")
        try:
            made[key] = json.loads(value)
        except json.JSONDecodeError:
            made[key] = value
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tokenwise_rl.conformance", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the operations, their profiles and the number of cases")
    for name, text in (
        ("check", "fails unless a function agrees with every case of a profile"),
        ("diagnose", "which profile a function follows, or what sets it apart"),
        ("properties", "NaN in dropped slots, padding, order, micro-batches"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("op")
        command.add_argument("function", help="module:function")
        command.add_argument("--profile")
        command.add_argument("--name", action="append", default=[], metavar="OURS=THEIRS")
        command.add_argument("--fixed", action="append", default=[], metavar="SETTING=VALUE")
        command.add_argument("--returns", help="names of the parts of a tuple, by commas")
        command.add_argument("--kind", choices=["numpy", "torch", "jax"])
        command.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if given.command == "list":
        rows = [
            [op, str(len(cases(op, refused=True))), ", ".join(name for name in names if name) or "-"]
            for op, names in operations().items()
        ]
        print("\n".join(table(["operation", "cases", "profiles"], rows)))
        return 0
    options: dict[str, Any] = {
        "names": _pairs(given.name),
        "fixed": _pairs(given.fixed),
        "returns": given.returns.split(",") if given.returns else None,
        "kind": given.kind,
    }
    function = _function(given.function)
    found: Any
    if given.command == "diagnose":
        found = diagnose(given.op, function, **options)
    elif given.command == "properties":
        found = properties(given.op, function, given.profile, **options)
    else:
        found = run(given.op, function, given.profile, **options)
    print(found.json() if given.json else found)
    return 0 if found.ok else 1


if __name__ == "__main__":
    sys.exit(main())

"""Reads the configuration from a TOML file and from flags, and says everything that is wrong with it at once."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from opstreamd.config import Config, HostedModel
from opstreamd.keys import Kind, toml

_SECTIONS: Final[dict[str, Any]] = {part.name: part.default_factory for part in dataclasses.fields(Config)}


class ConfigError(Exception):
    """A configuration that can't be used. `problems` holds one line for each thing that is wrong with it."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load(file: Path | None, flags: Mapping[str, object] | None = None) -> Config:
    """Reads a file (none: all defaults) and lets flags ("--state.directory" → value) override it."""
    document = {} if file is None else _parse(file)
    overrides = dict(flags or {})
    reader = Reader(str(file or ""), overrides)
    config = reader.config(document)
    if reader.problems:
        raise ConfigError(reader.problems)
    return config


def add_flags(parser: argparse.ArgumentParser, *sections: str) -> None:
    """Adds `--config.file` and the flags of the named sections (of all when none is named)."""
    parser.add_argument("--config.file", dest="config_file", type=Path, metavar="FILE", help="the configuration (TOML)")
    for section, part in _keys():
        if part.metadata["flag"] and (not sections or section in sections):
            several = {"action": "append"} if isinstance(part.default, tuple) else {}
            parser.add_argument(
                part.metadata["flag"],
                dest=part.metadata["flag"],
                metavar="VALUE",
                help=f"{part.metadata['doc']} Default: {part.metadata['shown']}".replace("%", "%%"),
                **several,  # type: ignore[arg-type]  # the stub has no word for optional keywords
            )


def from_flags(namespace: argparse.Namespace) -> Config:
    """What `add_flags` parsed, as a configuration. Raises ConfigError."""
    flags = {name: value for name, value in vars(namespace).items() if name.startswith("--") and value is not None}
    return load(namespace.config_file, flags)


def reference() -> str:
    """All keys with meaning, default and what they allow, as the text of the manual."""
    lines: list[str] = []
    for section, kind in [*_SECTIONS.items(), ("[hosted.models]", HostedModel)]:
        lines += [f"[{section}]", f"# {kind.__doc__}"]
        for part in dataclasses.fields(kind):
            if "kind" in part.metadata:
                flag = f" Flag: {part.metadata['flag']}" if part.metadata["flag"] else ""
                lines += [f"{part.name} = {part.metadata['shown']}", f"    {part.metadata['doc']}{flag}"]
                lines += [f"    Allowed: {part.metadata['kind'].allowed}."]
        lines.append("")
    return "\n".join(lines)


def _parse(file: Path) -> dict[str, Any]:
    text = ""
    try:
        text = file.read_text(encoding="utf-8")
        return tomllib.loads(text)
    except OSError as error:
        raise ConfigError([f"{file}: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"{file}: byte {error.start} is not UTF-8"]) from error
    except tomllib.TOMLDecodeError as error:
        end = f"(at line {text.count(chr(10)) + 1}, column {len(text) - text.rfind(chr(10))})"
        raise ConfigError([f"{file}: no TOML: {str(error).replace('(at end of document)', end)}"]) from error
    except RecursionError as error:
        raise ConfigError([f"{file}: nested too deeply"]) from error


def _keys() -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    for section, kind in _SECTIONS.items():
        for part in dataclasses.fields(kind):
            if "kind" in part.metadata:
                yield section, part


class Reader:
    """Reads one document, and collects what is wrong with it rather than stopping at the first."""

    def __init__(self, file: str, flags: dict[str, object]) -> None:
        self.problems: list[str] = []
        self._file = file
        self._flags = flags

    def config(self, document: Mapping[str, Any]) -> Config:
        self._unknown(document, list(_SECTIONS), "")
        parts = {name: self._section(kind, document.get(name, {}), name) for name, kind in _SECTIONS.items()}
        config = Config(**{name: part for name, part in parts.items() if part is not None})
        seen: dict[tuple[str, int], int] = {}
        for index, model in enumerate(config.hosted.models):
            first = seen.setdefault((model.name, model.device), index)
            if first != index:
                self._problem(
                    f"hosted.models[{index}].name",
                    f'"{model.name}" on device {model.device} is hosted.models[{first}] already',
                )
        return config

    def _section(self, kind: Any, table: object, where: str) -> Any:
        """The section, or None when it has no usable value for a key without default."""
        if not isinstance(table, dict):
            self._problem(where, f"{_short(table)} is not allowed here; allowed: a table")
            return None
        parts = dataclasses.fields(kind)
        self._unknown(table, [part.name for part in parts], where)
        values = {part.name: value for part in parts if (value := self._value(part, table, where)) is not None}
        needed = {part.name for part in parts if part.default is part.default_factory is dataclasses.MISSING}
        return kind(**values) if needed <= values.keys() else None

    def _value(self, part: dataclasses.Field[Any], table: Mapping[str, Any], where: str) -> Any:
        path = f"{where}.{part.name}"
        if "table" in part.metadata:
            return self._tables(part.metadata["table"], table.get(part.name, []), path)
        allowed: Kind = part.metadata["kind"]
        flag = part.metadata["flag"]
        if flag in self._flags:
            path, value = flag, self._flags[flag]
        elif part.name in table:
            value = table[part.name]
        elif part.default_factory is not dataclasses.MISSING:
            value = part.default_factory()  # made from the environment, so not to be trusted either
        else:
            if part.default is dataclasses.MISSING:
                self._problem(path, f"is missing; allowed: {allowed.allowed}")
            return None
        try:
            return allowed.read(value)
        except ValueError:
            self._problem(path, f"{_short(value)} is not allowed; allowed: {allowed.allowed}")
            return None

    def _tables(self, kind: Any, tables: object, path: str) -> tuple[Any, ...]:
        if not isinstance(tables, list):
            self._problem(path, f"{_short(tables)} is not allowed here; allowed: a list of tables, [[{path}]]")
            return ()
        read = (self._section(kind, table, f"{path}[{index}]") for index, table in enumerate(tables))
        return tuple(model for model in read if model is not None)

    def _unknown(self, table: Mapping[str, Any], known: list[str], where: str) -> None:
        prefix = f"{where}." if where else ""
        for name in table:
            if name not in known:
                near = [prefix + match for match in difflib.get_close_matches(name, known, n=1)]
                near = near or [f"{section}.{part.name}" for section, part in _keys() if part.name == name]
                hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"
                self._problem(prefix + _shown_key(name), f"unknown key{hint}")

    def _problem(self, where: str, what: str) -> None:
        source = f"{self._file}: " if self._file and not where.startswith("--") else ""
        self.problems.append(f"{source}{where}: {what}")


def _short(value: object) -> str:
    """A value as it stands in an error: one line, not longer than people read."""
    text = toml(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _shown_key(name: str) -> str:
    return name if name.isidentifier() and len(name) <= 80 else _short(name)


def main() -> int:
    """Prints the reference (`python -m opstreamd.configfile`)."""
    sys.stdout.write(reference())
    return 0


if __name__ == "__main__":
    sys.exit(main())

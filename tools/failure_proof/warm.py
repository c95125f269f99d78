# SPDX-FileCopyrightText: 2026 Quorumshift contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each run of Ansible reads and compiles anew is kept here for all runs: files of YAML, templates, plugins.

The results are those of Ansible's own code, so that only the time differs.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jinja2
from ansible.parsing.dataloader import DataLoader
from ansible.plugins import loader
from ansible.release import __version__
from ansible.utils import vars as variables
from ansible.utils.context_objects import GlobalCLIArgs
from ansible.utils.display import Display
from jinja2.environment import TemplateExpression

try:
    from ansible._internal._templating import _jinja_bits
    from ansible.module_utils._internal._datatag import _AnsibleTaggedDict, _AnsibleTaggedList
    from ansible.parsing.vault import VaultSecretsContext

    CAN_KEEP = True
except ImportError:  # up to ansible-core 2.18; nothing of it is kept there
    CAN_KEEP = False

_files: dict[tuple, Any] = {}
_codes: dict[bytes, bytes] = {}
_stores: list[Path] = []


def copied(value: Any) -> Any:
    """Return a copy of what was read from YAML: scalars and tags are immutable, containers are made anew."""
    kind = type(value)
    if kind is dict:
        return {key: copied(entry) for key, entry in value.items()}
    if kind is list:
        return [copied(entry) for entry in value]
    if kind is _AnsibleTaggedDict:
        made = {key: copied(entry) for key, entry in value.items()}
        return kind._instance_factory(made, value._ansible_tags_mapping)
    if kind is _AnsibleTaggedList:
        return kind._instance_factory([copied(entry) for entry in value], value._ansible_tags_mapping)
    return value


def files(directories: Iterable[Path]) -> None:
    """Read every file of YAML below the directories, and let all runs use what was read."""
    load = DataLoader.load_from_file

    def load_from_file(
        self: Any,
        file_name: str,
        cache: str = "all",
        unsafe: bool = False,
        json_only: bool = False,
        trusted_as_template: bool = False,
    ) -> Any:
        if unsafe or cache != "all":
            return load(self, file_name, cache, unsafe, json_only, trusted_as_template)
        path = self.path_dwim(file_name)
        status = os.stat(path) if os.path.exists(path) else None
        key = path, status and (status.st_mtime_ns, status.st_size), json_only, trusted_as_template
        if key not in _files:
            _files[key] = load(self, file_name, "none", True, json_only, trusted_as_template)
        return copied(_files[key])

    DataLoader.load_from_file = load_from_file
    reader = DataLoader()
    for path in sorted(file for directory in directories for file in directory.rglob("*.yml")):
        reader.load_from_file(str(path), trusted_as_template=True)


def read_templates() -> None:
    """Read what other processes have compiled since."""
    for store in _stores:
        if store.exists():
            with open(store, "rb") as stream, contextlib.suppress(EOFError, pickle.UnpicklingError):
                while True:
                    _codes.update([pickle.load(stream)])


def templates(directory: Path) -> None:
    """Let all runs use each other's compiled templates, also those of earlier runs, which are in the directory."""
    versions = f"{sys.version} {jinja2.__version__} {__version__}"
    store = directory / f"templates-{hashlib.sha256(versions.encode()).hexdigest()[:12]}"
    _stores[:] = [store]
    read_templates()
    kind = _jinja_bits.AnsibleEnvironment
    compile_template, compile_expression, compile_code = kind.compile, kind.compile_expression, kind._compile
    made: list[Any] = []

    def key_of(self: Any, what: str, source: str) -> bytes:
        context = _jinja_bits._TemplateCompileContext.current(optional=True)
        marks = ["block_start", "block_end", "variable_start", "variable_end", "comment_start", "comment_end"]
        options = [getattr(self, f"{mark}_string") for mark in marks] + [
            self.line_statement_prefix,
            self.line_comment_prefix,
            self.trim_blocks,
            self.lstrip_blocks,
            self.newline_sequence,
            self.keep_trailing_newline,
            self.optimized,
            self.autoescape,
            sorted(self.extensions),
        ]
        words = repr((what, type(self).__name__, str(source), context and context.escape_backslashes, options))
        return hashlib.sha256(words.encode()).digest()

    def kept(key: bytes, code: Any) -> None:
        _codes[key] = marshal.dumps(code)
        with open(store, "ab", buffering=0) as stream:
            stream.write(pickle.dumps((key, _codes[key])))

    def _compile(self: Any, source: str, filename: str) -> Any:
        code = compile_code(self, source, filename)
        made.append(code)
        return code

    def compile_(self: Any, source: Any, name: Any = None, filename: Any = None, *more: Any, **other: Any) -> Any:
        if not isinstance(source, str) or name or filename or more or other:
            return compile_template(self, source, name, filename, *more, **other)
        key = key_of(self, "template", source)
        if key not in _codes:
            kept(key, compile_template(self, source))
        return marshal.loads(_codes[key])

    def expression(self: Any, source: str, undefined_to_none: bool = True) -> Any:
        key = key_of(self, "expression", source)
        if key not in _codes:
            made.clear()
            found = compile_expression(self, source, undefined_to_none)
            kept(key, made[-1])
            return found
        code = marshal.loads(_codes[key])
        template = self.template_class.from_code(self, code, self.make_globals(None), None)
        return TemplateExpression(template, undefined_to_none)

    kind.compile, kind.compile_expression, kind._compile = compile_, expression, _compile


def plugins() -> None:
    """Find the connection plugins once: Ansible looks for their files each time that it gathers a host's variables."""
    found = loader.connection_loader.all
    paths = list(found(path_only=True))

    def every(*given: Any, **options: Any) -> Any:
        return iter(paths) if not given and options == {"path_only": True} else found(*given, **options)

    loader.connection_loader.all = every


def run(play: Callable[[], Any]) -> None:
    """Run a playbook here, for the plugins and their options that it loads, and forget that it ran."""
    kept = [os.dup(stream) for stream in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    code = None
    try:
        code = play()
        sys.stdout.flush()
    finally:
        for stream, handle in zip((1, 2), kept, strict=True):
            os.dup2(handle, stream)
            os.close(handle)
        os.close(nowhere)
    if code != 0:
        raise RuntimeError(f"the first run ended with exit code {code}")
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, signal.SIG_DFL if name == signal.SIGTERM else signal.default_int_handler)
    GlobalCLIArgs._Singleton__instance = None
    if CAN_KEEP:
        VaultSecretsContext._current = None
    for name in ("extra_vars", "options_vars"):
        for function in (variables.load_extra_vars, variables.load_options_vars):
            function.__dict__.pop(name, None)
    shown = Display()
    for name in ("_warns", "_errors", "_deprecations"):
        setattr(shown, name, type(getattr(shown, name))())

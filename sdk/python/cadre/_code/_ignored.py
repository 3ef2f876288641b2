# SPDX-License-Identifier: Apache-2.0
"""Which files of a folder do not travel: the rules of .gitignore (gitignore(5)), .git, caches of Python, virtual
environments.
"""

import os
import re
from typing import NamedTuple

FILE = ".gitignore"
_NEVER = frozenset((".git", ".hg", ".svn", "__pycache__"))
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"  # each has this file


class _Rule(NamedTuple):
    pattern: re.Pattern
    keeps: bool  # "!": cancels an earlier rule
    folders_only: bool


def _segment(text):
    """One part of a path between slashes, as a regular expression."""
    out, i = "", 0
    while i < len(text):
        c = text[i]
        i += 1
        if c == "*":
            out += "[^/]*"
        elif c == "?":
            out += "[^/]"
        elif c == "[" and "]" in text[i + 1:]:
            end = text.index("]", i + 1)
            inside = text[i:end].replace("\\", "\\\\")
            out += "(?!/)[" + ("^" + inside[1:] if inside[0] in "!^" else inside) + "]"
            i = end + 1
        elif c == "\\" and i < len(text):
            out += re.escape(text[i])
            i += 1
        else:
            out += re.escape(c)
    return out


def _rule(line):
    """Returns None if the line has no rule."""
    line = re.sub(r"(?<!\\) +$", "", line.rstrip("\r\n"))
    if not line or line.startswith("#"):
        return None
    keeps = line.startswith("!")
    line = line[keeps:]
    folders_only = line.endswith("/")
    parts = line.rstrip("/").split("/")
    out = "" if len(parts) > 1 else "(?:.*/)?"  # with a slash, the pattern counts from here; without one, at any depth
    parts = parts[1:] if parts[0] == "" else parts
    if not any(parts):
        return None
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if part == "**":
            out += ".+" if last else "(?:.*/)?"
        else:
            out += _segment(part) + ("" if last else "/")
    try:
        return _Rule(re.compile(out, re.DOTALL), keeps, folders_only)
    except re.error:  # such as [z-a], which matches nothing
        return None


def read(lines):
    """Reads the rules of a file, or of a list of patterns."""
    return [rule for rule in map(_rule, lines) if rule]


def _of_folder(folder):
    try:
        with open(os.path.join(folder, FILE), encoding="utf-8", errors="surrogateescape") as f:
            return read(f)
    except FileNotFoundError:
        return []


def _verdict(rules, path, is_folder):
    """True: the path is left out. None: no rule matches. The last rule that matches counts."""
    for rule in reversed(rules):
        if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(path):
            return not rule.keeps
    return None


class Ignored:
    """The rules that apply in a folder: its own, the ones of the folders above it, and patterns that override all."""

    def __init__(self, folder, excludes=()):
        self._root = os.path.abspath(folder)
        self._first = read(excludes)
        self._outer = self._above()

    def _above(self):
        """(path from there to here, rules) of the folders between this one and its repository, the nearest first."""
        found, at = [], self._root
        while not os.path.exists(os.path.join(at, ".git")):
            if os.path.dirname(at) == at:
                return []  # there is no repository
            at = os.path.dirname(at)
            found.append((os.path.relpath(self._root, at).replace(os.sep, "/") + "/", _of_folder(at)))
        return found

    def files(self):
        """Yields (path from the folder, os.DirEntry) for all entries that travel. Folders themselves are not entries.
        """
        yield from self._walk("", [])

    def _walk(self, at, inner):
        """inner: (path of a folder, its rules), the nearest first."""
        folder = os.path.join(self._root, at)
        inner = [(at, _of_folder(folder)), *inner]
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            path = at + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if self._leaves_out(entry, path, is_folder, inner):
                continue
            if is_folder:
                yield from self._walk(path + "/", inner)
            else:
                yield path, entry

    def _leaves_out(self, entry, path, is_folder, inner):
        if entry.name in _NEVER or is_folder and os.path.exists(os.path.join(entry.path, _VIRTUAL_ENVIRONMENT)):
            return True
        levels = [(path, self._first), *((path[len(at):], rules) for at, rules in inner),
                  *((prefix + path, rules) for prefix, rules in self._outer)]
        for name, rules in levels:
            said = _verdict(rules, name, is_folder)
            if said is not None:
                return said
        return False

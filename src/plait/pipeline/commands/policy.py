"""CommandPolicy: may this command be run? A guard rail in front of the sandbox, not in place of it.

A command is words (argv), or text that reads as plain words. Its program must be allow-listed: the name
leads, on a fixed PATH, to one file, and that file is what runs. Programs that could do more than their
name says are held by rules on their arguments. No text is searched for bad words: `echo shutdown` is fine.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from plait.pipeline.commands.arguments import names
from plait.pipeline.commands.entries import Entries, Entry
from plait.pipeline.commands.executables import DEFAULT_PATH, Executables
from plait.pipeline.commands.launchers import rules_for
from plait.pipeline.commands.syntax import ShellText
from plait.pipeline.commands.verdicts import Approved, Command, Pipeline, Redirection, Refusal, Unacceptable

DEFAULT_ALLOW = names("echo cat ls pwd head tail wc grep find sort uniq diff date env true false test")
DEFAULT_DENY = names("sudo su doas mkfs dd shutdown reboot poweroff halt")
MAX_ARGUMENT = 128 * 1024 - 1
"""Bytes; Linux runs nothing with a longer one."""
MAX_TOTAL = 1024 * 1024
"""Bytes of all arguments together."""
_BUILTINS = names("cd export source . type command alias read set unset eval exec history umask ulimit")


class CommandPolicy:
    """Judges commands. `allow` replaces the default list; an entry may go on with arguments: "git status".

    `roots` are the folders that commands may write to: redirections lead there, and no program is run
    from there. `shell` permits text with pipes, lists and redirections made of plain commands. With
    `deny`, every program on `path` is allowed but those.
    """

    def __init__(
        self,
        allow: Sequence[str] | None = None,
        *,
        shell: bool = False,
        roots: Sequence[Path] = (),
        path: str = DEFAULT_PATH,
        deny: Sequence[str] | None = None,
    ) -> None:
        self.path = path
        self._allowed = Entries(DEFAULT_ALLOW if allow is None else allow)
        self._denied = None if deny is None else Entries(deny)
        self._roots = [os.path.realpath(root) for root in roots]
        self._executables = Executables(path, roots)
        self._text = ShellText(shell=shell)

    @classmethod
    def configured(
        cls,
        mode: str = "allowlist",
        allowlist: Sequence[str] = (),
        denylist: Sequence[str] = (),
        *,
        shell: bool = False,
        roots: Sequence[Path] = (),
        path: str = DEFAULT_PATH,
    ) -> "CommandPolicy":
        """By the names of a seed's file: an empty list is the default one, an unknown mode the strict one."""
        deny = (denylist or sorted(DEFAULT_DENY)) if mode == "denylist" else None
        return cls(allowlist or None, shell=shell, roots=roots, path=path, deny=deny)

    def judge(self, command: str | Sequence[str], *, cwd: Path | None = None) -> Approved | Refusal:
        """What may be run, or why nothing may. `cwd` is where it would run; relative targets start there."""
        try:
            return Approved(tuple(self._approve(pipeline, cwd) for pipeline in self._read(command)))
        except Unacceptable as no:
            return no.refusal
        except OSError as problem:  # a file vanished while we looked, or a path is too long
            return Refusal("C-executable", f"a path cannot be examined: {problem.strerror}")

    def _read(self, command: str | Sequence[str]) -> tuple[Pipeline, ...]:
        if isinstance(command, str):
            return self._text.read(command)
        return (Pipeline((Command(_words(command)),)),)

    def _approve(self, pipeline: Pipeline, cwd: Path | None) -> Pipeline:
        return replace(pipeline, commands=tuple(self._approve_one(one, cwd) for one in pipeline.commands))

    def _approve_one(self, command: Command, cwd: Path | None) -> Command:
        for redirection in command.redirections:
            self._check_target(redirection, cwd)
        return replace(command, executable=self._authorise(command.argv[0], command.argv[1:]))

    def _authorise(self, written: str, arguments: Sequence[str]) -> str:
        """The file to execute, if this program may be run with these arguments."""
        name = os.path.basename(written)
        entry = self._permitted(name, arguments)
        executable = self._executables.find(entry.program)
        if written not in (name, executable) and not self._leads_to(written, executable):
            raise Unacceptable("C-executable", f"{written} is not the allowed {name}, which is {executable}")
        for rule, find_fault in rules_for(name, os.path.basename(executable)):
            if (fault := find_fault(arguments, len(entry.words))) is not None:
                raise Unacceptable(rule, f"{name}: {fault}")
        return executable

    def _permitted(self, name: str, arguments: Sequence[str]) -> Entry:
        """The line of the list by which a command may be run."""
        if self._denied is not None:
            program = os.path.basename(self._executables.find(name))
            for each in (name, program, name.partition(".")[0]):  # mkfs.ext4 is one of the mkfs
                if (entry := self._denied.covering(each, arguments)) is not None:
                    raise Unacceptable("C-denied", f"'{entry.text}' is on the list of denied commands")
            return Entry(name, name, ())
        if (entry := self._allowed.covering(name, arguments)) is not None:
            return entry
        if forms := self._allowed.named(name):
            raise Unacceptable(
                "C-unlisted", f"{name} may only be run as: {'; '.join(form.text for form in forms)}"
            )
        if name in _BUILTINS:
            raise Unacceptable("C-builtin", f"{name} is a part of a shell, and none is used here")
        raise Unacceptable("C-unlisted", f"'{name}' is not an allowed command; these are: {self._allowed}")

    @staticmethod
    def _leads_to(written: str, executable: str) -> bool:
        return written.startswith("/") and os.path.realpath(written) == executable

    def _check_target(self, redirection: Redirection, cwd: Path | None) -> None:
        """See that a redirection leads into a root; the sandbox sees to it again when it is opened."""
        target = redirection.target
        if redirection.operator == ">&" or target == os.devnull:
            return
        place = os.path.realpath(os.path.join(cwd or next(iter(self._roots), "/"), target))
        inside = any(place.startswith(os.path.join(root, "")) for root in self._roots)
        if not inside or (cwd is None and ".." in target.split("/")):
            allowed = ", ".join(self._roots) or "nothing"
            raise Unacceptable("C-redirection", f"'{target}' lies outside of what may be written ({allowed})")


def _words(command: object) -> tuple[str, ...]:
    """The words of an argv that a system could run."""
    if not isinstance(command, Sequence) or not all(isinstance(word, str) for word in command):
        raise Unacceptable("C-text", "a command is a text, or a list of texts")
    if not command or not command[0]:
        raise Unacceptable("C-empty", "the command is empty")
    if sum(map(_size, command)) > MAX_TOTAL:
        raise Unacceptable("C-text", f"its arguments have more than {MAX_TOTAL} bytes in all")
    return tuple(command)


def _size(word: str) -> int:
    """The bytes of an argument and of its end, if a system could run it."""
    try:
        size = len(word.encode())
    except UnicodeEncodeError:
        raise Unacceptable("C-text", "an argument is not valid Unicode text") from None
    if "\0" in word:
        raise Unacceptable("C-text", "an argument contains a NUL character")
    if size > MAX_ARGUMENT:
        raise Unacceptable("C-text", f"an argument has more than {MAX_ARGUMENT} bytes")
    return size + 1

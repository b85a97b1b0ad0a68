"""Read shell text as commands of literal words; two readers must agree on every one of its bytes.

tree-sitter-bash says what the text is (a command, a pipeline, a loop …), our own tokens say what its
words are. The tree is walked from left to right and must meet the tokens one by one, each exactly
where it is: a difference between the two, or anything but plain commands, refuses the text. What
comes out is run without a shell, so a mistake here could only run the wrong words, never more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from plait.pipeline.commands.tokens import MAX_OPERATORS, MAX_TEXT, Kind, Token, tokenize
from plait.pipeline.commands.verdicts import Command, Pipeline, Redirection, Unacceptable

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_BLANK = " \t\n"
_WORDS = frozenset({"word", "number", "string", "raw_string", "concatenation", "$"})
_NOT_PLAIN = {
    "variable_assignment": ("C-assignment", "variables are not set: there is no shell to keep them"),
    "variable_assignments": ("C-assignment", "variables are not set: there is no shell to keep them"),
    "declaration_command": ("C-builtin", "it is a part of a shell, and none is used here"),
    "unset_command": ("C-builtin", "it is a part of a shell, and none is used here"),
    "negated_command": ("C-shell", "a result is not negated with !: look at the exit code"),
}
_TOO_MUCH = ("C-shell", "only plain commands are run: no groups, conditions, loops or functions")
_ONE_ONLY = (
    "one plain command is run at a time: no pipes, lists or redirections (policy.commands.shell is off)"
)


class ShellText:
    """The reader of commands given as text; the grammar is loaded when the first one comes."""

    def __init__(self, *, shell: bool) -> None:
        self._shell = shell
        self._parser: Parser | None = None

    def read(self, text: str) -> tuple[Pipeline, ...]:
        """The commands of the text; Unacceptable says why it is not made of plain ones."""
        source = _encode(text)
        tokens = tokenize(source)
        if not tokens:
            raise Unacceptable("C-empty", "the command is empty")
        self._check_separators(tokens)
        self._parser = self._parser or _load()
        tree = self._parser.parse(source)
        if tree.root_node.has_error:
            raise Unacceptable("C-syntax", "it is not valid shell text")
        return _Walk(tokens).program(tree.root_node)

    def _check_separators(self, tokens: list[Token]) -> None:
        separators = [token for token in tokens if token.kind in (Kind.OPERATOR, Kind.NEWLINE)]
        if not self._shell:
            for token in separators:
                if token.kind is Kind.NEWLINE:
                    raise Unacceptable("C-newline", "it is more than one line: give one command at a time")
                raise Unacceptable("C-shell", _ONE_ONLY)
        if len(separators) > MAX_OPERATORS:
            raise Unacceptable("C-text", f"it has more than {MAX_OPERATORS} operators")


def _encode(text: str) -> bytes:
    try:
        source = text.strip(_BLANK).encode()
    except UnicodeEncodeError:
        raise Unacceptable("C-text", "the command is not valid Unicode text") from None
    if len(source) > MAX_TEXT:
        raise Unacceptable("C-text", f"the text has more than {MAX_TEXT} bytes: give argv instead")
    return source


def _load() -> Parser:
    import tree_sitter_bash  # noqa: PLC0415  (most processes never judge a command)
    from tree_sitter import Language, Parser  # noqa: PLC0415

    return Parser(Language(tree_sitter_bash.language()))


class _Walk:
    """From the tree to commands, taking the tokens one by one."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def program(self, root: Node) -> tuple[Pipeline, ...]:
        """Statements, each after a semicolon or on a line of its own."""
        pipelines: list[Pipeline] = []
        for node in root.children:
            if node.type == ";":
                self._take(node, Kind.OPERATOR)
            else:
                self._skip_newlines()
                pipelines += self._statement(node, ";")
        if self._next != len(self._tokens) or not pipelines:
            raise _disagreement()
        return tuple(pipelines)

    def _statement(self, node: Node, when: str) -> list[Pipeline]:
        match node.type:
            case "command":
                return [Pipeline((self._command(node),), when)]
            case "pipeline":
                return [Pipeline(self._pipeline(node), when)]
            case "list":
                left, operator, right = node.children
                pipelines = self._statement(left, when)
                return pipelines + self._statement(right, self._take(operator, Kind.OPERATOR))
            case "redirected_statement":
                return self._redirected(node, when)
        raise Unacceptable(*_NOT_PLAIN.get(node.type, _TOO_MUCH))

    def _pipeline(self, node: Node) -> tuple[Command, ...]:
        commands: list[Command] = []
        for child in node.children:
            if child.type == "|":
                self._take(child, Kind.OPERATOR)
            else:
                commands += [command for part in self._statement(child, ";") for command in part.commands]
        return tuple(commands)

    def _redirected(self, node: Node, when: str) -> list[Pipeline]:
        """The grammar hangs redirections on a whole list; in a shell they are the last command's."""
        body, *redirects = node.children
        *before, last = self._statement(body, when)
        *others, command = last.commands
        added = tuple(found for redirect in redirects for found in self._redirection(redirect))
        command = replace(command, redirections=command.redirections + added)
        return [*before, replace(last, commands=(*others, command))]

    def _redirection(self, node: Node) -> tuple[Redirection, ...]:
        children = node.children
        if node.type != "file_redirect":
            raise Unacceptable("C-shell", "here-documents are not run: write a file first")
        number = self._take(children.pop(0), Kind.DESCRIPTOR) if len(children) == 3 else None
        if len(children) != 2 or children[1].type not in _WORDS:
            raise Unacceptable("C-shell", "a redirection stands at the end of its command and has one target")
        operator, target = self._take(children[0], Kind.OPERATOR), self._take(children[1], Kind.WORD)
        return tuple(_redirections(operator, number, target))

    def _command(self, node: Node) -> Command:
        words = []
        for child in node.children:
            if child.type not in _WORDS and child.type != "command_name":
                raise Unacceptable(*_NOT_PLAIN.get(child.type, _TOO_MUCH))
            words.append(self._take(child, Kind.WORD))
        return Command(tuple(words))

    def _take(self, node: Node, kind: Kind) -> str:
        token = self._tokens[self._next] if self._next < len(self._tokens) else None
        if token is None or (token.start, token.end, token.kind) != (node.start_byte, node.end_byte, kind):
            raise _disagreement()
        self._next += 1
        return token.value

    def _skip_newlines(self) -> None:
        while self._next < len(self._tokens) and self._tokens[self._next].kind is Kind.NEWLINE:
            self._next += 1


def _redirections(operator: str, number: str | None, target: str) -> list[Redirection]:
    """One redirection, or the two that &> stands for."""
    if operator in ("&>", "&>>") and number is None:
        return [Redirection(1, operator[1:], target), Redirection(2, ">&", "1")]
    descriptor = int(number) if number else int(operator != "<")
    known = operator in ("<", ">", ">>") or (operator == ">&" and target in ("1", "2"))
    if not known or descriptor > 2 or (descriptor == 0) != (operator == "<"):
        raise Unacceptable(
            "C-shell", "only < FILE, > FILE, >> FILE, &> FILE, 2> FILE and 2>&1 are understood"
        )
    return [Redirection(descriptor, operator, target)]


def _disagreement() -> Unacceptable:
    return Unacceptable("C-syntax", "it can be read in more than one way: quote its words, or give argv")

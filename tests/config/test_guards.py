"""Rules, policies, limits of results and the audit: what they say, and what a mistake in them does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from plait.config import (
    AuditSettings,
    CommandSettings,
    Config,
    ParameterSetting,
    PolicySettings,
    Problem,
    ResultSettings,
    RuleSetting,
    Settings,
    UrlSettings,
    load,
)

Read = Callable[..., Config]


def own(text: str) -> str:
    return '{"plait": {' + text + "}}"


def settings(config: Config) -> Settings:
    assert not config.problems
    return config.settings


def is_closed(config: Config) -> bool:
    """Whether the first rule denies everything to everybody, which is then told."""
    told = [problem.server for problem in config.problems if problem.code == "C112"]
    assert told in ([], [None])
    first = config.settings.rules[:1]
    denied = [(rule.effect, rule.pattern, rule.identity, rule.unless) for rule in first]
    assert bool(told) is (denied == [("deny", "*", "*", {})])
    return bool(told)


def mistakes(config: Config) -> list[Problem]:
    """What is wrong, without what follows from it."""
    return [problem for problem in config.problems if problem.code != "C112"]


class TestRules:
    def test_are_read_in_order_and_know_their_lines(self, read: Read) -> None:
        config = read(
            own(
                '"rules": [\n'
                '{"deny": "fs__write_*", "unless": {"path": "/tmp/**"}, "reason": "read-only project"},\n'
                '{"allow": "*", "identity": "ada"}]'
            )
        )
        assert settings(config).rules == (
            RuleSetting(
                "deny",
                "fs__write_*",
                unless={"path": "/tmp/**"},
                reason="read-only project",
                where="plait.json:2",
            ),
            RuleSetting("allow", "*", identity="ada", where="plait.json:3"),
        )

    def test_none_are_none(self, read: Read) -> None:
        assert settings(read(own('"rules": []'))).rules == ()

    @pytest.mark.parametrize(
        ("rule", "message", "path"),
        [
            ("{}", "a rule has one of 'allow' and 'deny', this one has neither", "[0]"),
            (
                '{"allow": "a", "deny": "b"}',
                "a rule has one of 'allow' and 'deny', this one has both",
                "[0]",
            ),
            ('{"deny": null}', "a rule has one of 'allow' and 'deny', this one has neither", "[0]"),
            ('{"deny": ""}', "an empty string", "[0].deny"),
            ('{"deny": ["a"]}', "expected a string, got a list", "[0].deny"),
            ('{"denny": "a"}', "unknown field 'denny'. Did you mean 'deny'?", "[0].denny"),
            ('{"ask": "a"}', "unknown field 'ask'", "[0].ask"),
            ('{"deny": "a", "unless": "b"}', "expected an object with a pattern for", "[0].unless"),
            ('{"deny": "a", "unless": {"n": 5}}', "expected a string, got a number", "[0].unless.n"),
            ('{"deny": "a", "identity": ""}', "an empty string", "[0].identity"),
            ('{"deny": "a", "reason": 1}', "expected a string, got a number", "[0].reason"),
            ('"deny a"', "expected an object, got a string", "[0]"),
        ],
    )
    def test_one_that_cannot_be_read_is_told_and_lets_nothing_through(
        self, read: Read, rule: str, message: str, path: str
    ) -> None:
        config = read(own(f'"rules": [{rule}, {{"allow": "*"}}]'))
        (problem,) = mistakes(config)
        assert problem.where is not None
        assert problem.message.startswith(message)
        assert (problem.where.path, problem.server) == (f"plait.rules{path}", None)
        assert is_closed(config)
        assert [each.pattern for each in config.settings.rules] == ["*", "*"]

    def test_every_rule_that_is_wrong_is_told(self, read: Read) -> None:
        config = read(own('"rules": [{}, 7, {"allow": "x"}, {"deny": 1}]'))
        assert [str(problem.where) for problem in mistakes(config)] == [
            "plait.json:1:22",
            "plait.json:1:26",
            "plait.json:1:54",
        ]

    def test_one_object_in_place_of_a_list_is_told(self, read: Read) -> None:
        config = read(own('"rules": {"deny": "*"}'))
        assert [problem.message for problem in mistakes(config)] == [
            "expected a list of rules, got an object"
        ]
        assert is_closed(config)


class TestCommands:
    def test_every_setting_has_its_name(self, read: Read) -> None:
        text = '"mode": "denylist", "allow": ["git status", "/bin/ls"], "deny": ["rm"], "shell": true'
        expected = CommandSettings(
            mode="denylist", allowlist=("git status", "/bin/ls"), denylist=("rm",), shell=True
        )
        assert settings(read(own(f'"policy": {{"commands": {{{text}}}}}'))).policy == PolicySettings(
            commands=expected
        )
        longer = text.replace("allow", "allowlist").replace('"deny"', '"denylist"')
        assert settings(read(own(f'"policy": {{"commands": {{{longer}}}}}'))).policy.commands == expected

    def test_an_empty_object_is_a_policy_all_the_same(self, read: Read) -> None:
        assert settings(read(own('"policy": {"commands": {}}'))).policy.commands == CommandSettings()
        assert settings(read(own('"policy": {"commands": null}'))).policy.commands is None

    @pytest.mark.requirement("BC-24")
    def test_an_unknown_mode_is_the_strict_one_and_told(self, read: Read) -> None:
        config = read(own('"policy": {"commands": {"mode": "off"}}'))
        (problem,) = mistakes(config)
        assert (problem.severity, problem.message) == (
            "warning",
            "'off' is none of 'allowlist', 'denylist'",
        )
        assert config.settings.policy.commands == CommandSettings(mode="allowlist")
        assert not is_closed(config)

    @pytest.mark.parametrize("line", ["", " ", "./ls", "bin/ls", "/bin/", "'ls"])
    def test_a_line_that_names_no_program_is_told(self, read: Read, line: str) -> None:
        config = read(own(f'"policy": {{"commands": {{"allow": ["ls", "{line}"]}}}}'))
        (problem,) = mistakes(config)
        assert problem.message == "expected a command that names a program"
        assert problem.where is not None
        assert problem.where.path == "plait.policy.commands.allow[1]"
        assert is_closed(config)


class TestUrls:
    @pytest.mark.requirement("BC-31")
    @pytest.mark.parametrize("snake", [False, True])
    def test_every_setting_has_its_name(self, read: Read, snake: bool) -> None:
        text = (
            '"enabled": false, "allowPrivate": true, "allowedDomains": ["a.example", "*.b.example", "::1"],'
            ' "blockedDomains": ["bücher.example"], "privateRanges": ["10.1.0.0/16", "fd00::/8"],'
            ' "ports": [80, 443]'
        )
        if snake:
            for word in ("allowPrivate", "allowedDomains", "blockedDomains", "privateRanges"):
                snaked = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in word)
                text = text.replace(word, snaked)
        assert settings(read(own(f'"policy": {{"urls": {{{text}}}}}'))).policy.urls == UrlSettings(
            enabled=False,
            allow_private=True,
            allowed_domains=("a.example", "*.b.example", "::1"),
            blocked_domains=("bücher.example",),
            private_ranges=("10.1.0.0/16", "fd00::/8"),
            ports=(80, 443),
        )

    @pytest.mark.parametrize(
        ("text", "messages"),
        [
            ('"blockedDomains": ["https://ada:hush@a.example/"]', ["expected a domain"]),
            ('"blockedDomains": ["a.example:80", "a.*.example"]', ["expected a domain"] * 2),
            ('"blockedDomains": "a.example"', ["expected a list of strings, got a string"]),
            ('"privateRanges": ["10.1.0.1/16", "10.x"]', ["expected a network"] * 2),
            ('"ports": [0, 65536, "80", 80.0, true, 80]', ["expected a port, from 1 to 65535"] * 5),
            ('"ports": 80', ["expected a list of ports, got a number"]),
            ('"allowPrivate": "no"', ["expected true or false, got a string"]),
            ('"allowed": ["a.example"]', ["unknown field 'allowed'"]),
        ],
    )
    def test_a_wrong_value_is_told_and_lets_nothing_through(
        self, read: Read, text: str, messages: list[str]
    ) -> None:
        config = read(own(f'"policy": {{"urls": {{{text}}}}}'))
        assert [problem.message for problem in mistakes(config)] == messages
        assert config.settings.policy.urls == UrlSettings()
        assert is_closed(config)
        assert "hush" not in "".join(problem.render() for problem in config.problems)


class TestParameters:
    def test_say_what_is_what_by_tool(self, read: Read) -> None:
        text = '"parameters": {"sh__*": {"line": "command", "cmd": "none"}, "web__get": {"to": "url"}}'
        assert settings(read(own(f'"policy": {{{text}}}'))).policy.parameters == (
            ParameterSetting(tool="sh__*", parameter="line", kind="command"),
            ParameterSetting(tool="sh__*", parameter="cmd", kind="none"),
            ParameterSetting(tool="web__get", parameter="to", kind="url"),
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[]", "expected an object with an object for each tool, got a list"),
            ('{"a": "url"}', "expected an object with a kind for each parameter, got a string"),
            ('{"a": {"b": "uri"}}', "'uri' is none of 'command', 'url', 'none'"),
        ],
    )
    def test_a_wrong_value_is_told(self, read: Read, text: str, message: str) -> None:
        config = read(own(f'"policy": {{"parameters": {text}}}'))
        assert [problem.message for problem in mistakes(config)] == [message]
        assert is_closed(config)


class TestResults:
    @pytest.mark.parametrize(
        "text",
        [
            '"maxBytes": 100, "perTool": {"fs__read": 7}, "tool": true, "sanitise": false,'
            ' "stripInvisible": true',
            '"max_bytes": 100, "per_tool": {"fs__read": 7}, "tool": true, "sanitize": false,'
            ' "strip_invisible": true',
        ],
    )
    def test_every_setting_has_its_name(self, read: Read, text: str) -> None:
        assert settings(read(own(f'"results": {{{text}}}'))).results == ResultSettings(
            max_bytes=100, per_tool={"fs__read": 7}, tool=True, sanitise=False, strip_invisible=True
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('"maxBytes": 0', "expected 1 or more"),
            ('"perTool": {"a": "7"}', "expected a whole number, got a string"),
            ('"perTool": 7', "expected an object with a number of bytes for each tool, got a number"),
            ('"sanitise": true, "sanitize": false', "'sanitize' says again what 'sanitise' says"),
        ],
    )
    def test_a_wrong_value_leaves_its_default_and_closes_nothing(
        self, read: Read, text: str, message: str
    ) -> None:
        config = read(own(f'"results": {{{text}}}'))
        assert [problem.message for problem in mistakes(config)] == [message]
        assert config.settings == Settings()


class TestAudit:
    def test_the_folder_is_expanded(self, read: Read, tmp_path: Path) -> None:
        text = own('"audit": {"mode": "strict", "dir": "FOLDER"}')
        for folder, expected in (
            ("~/audit", "/home/ada/audit"),
            ("${STATE:-~/state}/audit", "/home/ada/state/audit"),
            ("~", "/home/ada"),
            ("/var/./audit", "/var/audit"),
            ("audit", str(tmp_path / "audit")),
        ):
            config = read(text.replace("FOLDER", folder), HOME="/home/ada")
            assert settings(config).audit == AuditSettings(mode="strict", dir=expected)

    @pytest.mark.parametrize(
        ("text", "code", "message"),
        [
            ('"mode": "strct"', "C107", "'strct' is none of 'best_effort', 'strict', 'off'"),
            ('"dir": "${NOPE}/audit"', "C104", "environment variable NOPE is not set"),
            ('"dir": "~/audit"', "C104", "HOME is not set, so ~ has no value"),
            ('"dir": "~eve/audit"', "C107", "the folder of another user"),
            ('"dir": ""', "C107", "an empty string"),
        ],
    )
    def test_one_that_is_not_to_be_had_lets_nothing_through(
        self, read: Read, text: str, code: str, message: str
    ) -> None:
        config = read(own(f'"audit": {{{text}}}'))
        assert [(problem.code, problem.message) for problem in mistakes(config)] == [(code, message)]
        assert is_closed(config)


@pytest.mark.parametrize(
    "text", ['"rulez": []', '"polices": {}', '"alowedTools": []', '"policy": true', '"approvals": []']
)
def test_what_may_be_meant_for_a_guard_and_is_not_understood_lets_nothing_through(
    read: Read, text: str
) -> None:
    config = read(own(text))
    assert len(mistakes(config)) == 1
    assert is_closed(config)


@pytest.mark.parametrize("text", ['"separator": "-"', '"nameBugdet": 1', '"results": {"x": 1}'])
def test_other_mistakes_close_nothing(read: Read, text: str) -> None:
    config = read(own(text))
    assert len(mistakes(config)) == 1
    assert not is_closed(config)


@pytest.mark.parametrize(
    ("section", "shown"),
    [
        ('"rules": [{"denny": "x"}]', '{"plait": {"rules": [{"denny": "***"}]}}'),
        ('"rules": [{"deny": "x", "reason": 1}]', '{"plait": {"rules": [{"deny": "x", "reason": 1}]}}'),
        ('"policy": {"commands": {"mode": "x"}}', '{"plait": {"policy": {"commands": {"mode": "x"}}}}'),
        ('"results": {"maxBytes": "9"}', '{"plait": {"results": {"maxBytes": "9"}}}'),
        ('"limits": {"queue": "9"}', '{"plait": {"limits": {"queue": "9"}}}'),
    ],
)
def test_the_line_shows_what_is_no_secret(read: Read, section: str, shown: str) -> None:
    (problem,) = mistakes(read(own(section)))
    assert problem.excerpt == shown


class TestTheSeedsForm:
    TEXT = (
        '{"tools": {"mcp_servers": {}, "allowed_tools": ["read_file"]}, "security": {'
        '"command_policy": {"mode": "denylist", "allowlist": ["ls"], "denylist": ["rm"]},'
        '"url_policy": {"enabled": true, "allow_private": true, "allowed_domains": ["a.example"],'
        ' "blocked_domains": ["b.example"]}}}'
    )
    EXPECTED = Settings(
        allowed_tools=("read_file",),
        policy=PolicySettings(
            commands=CommandSettings(mode="denylist", allowlist=("ls",), denylist=("rm",)),
            urls=UrlSettings(
                allow_private=True, allowed_domains=("a.example",), blocked_domains=("b.example",)
            ),
        ),
    )

    @pytest.mark.requirement("BC-31")
    def test_means_the_same_as_ours(self, read: Read) -> None:
        assert settings(read(self.TEXT)) == self.EXPECTED
        ours = (
            '"allowedTools": ["read_file"], "policy": {'
            '"commands": {"mode": "denylist", "allow": ["ls"], "deny": ["rm"]},'
            '"urls": {"allowPrivate": true, "allowedDomains": ["a.example"],'
            ' "blockedDomains": ["b.example"]}}'
        )
        assert settings(read(own(ours))) == self.EXPECTED

    def test_has_a_spelling_in_one_word_too(self, read: Read) -> None:
        text = self.TEXT.replace("allowed_tools", "allowedTools")
        text = text.replace("command_policy", "commandPolicy").replace("url_policy", "urlPolicy")
        assert settings(read(text)) == self.EXPECTED

    def test_ours_go_on_top(self, read: Read) -> None:
        text = (
            self.TEXT[:-1] + ', "plait": {"allowedTools": [], "policy": {"commands": {"mode": "allowlist"}}}}'
        )
        config = settings(read(text))
        assert config.allowed_tools == ()
        assert config.policy.urls == self.EXPECTED.policy.urls
        assert config.policy.commands == CommandSettings(allowlist=("ls",), denylist=("rm",))

    def test_keys_of_other_programs_beside_it_are_passed_over(self, read: Read) -> None:
        config = read(
            '{"security": {"auth": {"selectedType": "x"}}, "tools": {"allowed": ["x"], "sandbox": true}}'
        )
        assert settings(config) == Settings()
        assert settings(read('{"security": true, "tools": ["x"]}')) == Settings()

    def test_a_near_miss_is_told(self, read: Read) -> None:
        config = read('{"security": {"comand_policy": {}}, "tools": {"allowed_tool": []}}')
        assert [(problem.severity, problem.message) for problem in mistakes(config)] == [
            ("warning", "unknown field 'allowed_tool'. Did you mean 'allowed_tools'?"),
            ("warning", "unknown field 'comand_policy'. Did you mean 'command_policy'?"),
        ]

    @pytest.mark.parametrize(
        ("text", "path"),
        [
            ('"tools": {"allowed_tools": "x"}', "tools.allowed_tools"),
            ('"security": {"command_policy": []}', "security.command_policy"),
            ('"security": {"url_policy": {"enabled": 1}}', "security.url_policy.enabled"),
        ],
    )
    def test_a_wrong_value_is_told_and_lets_nothing_through(self, read: Read, text: str, path: str) -> None:
        config = read("{" + text + "}")
        (problem,) = mistakes(config)
        assert problem.where is not None
        assert problem.where.path == path
        assert is_closed(config)


class TestSeveralFiles:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def load(self, *texts: str) -> Config:
        files = [f"{number}.json" for number in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            Path(file).write_text(text)
        return load(files, {})

    def test_rules_are_put_one_behind_the_other(self) -> None:
        config = self.load(
            own('"rules": [{"deny": "a"}, {"deny": "b"}]'), "{}", own('"rules": [{"allow": "c"}]')
        )
        assert [(rule.pattern, rule.where) for rule in settings(config).rules] == [
            ("a", "0.json:1"),
            ("b", "0.json:1"),
            ("c", "2.json:1"),
        ]

    def test_of_everything_else_the_later_wins_key_by_key(self) -> None:
        config = self.load(
            own(
                '"policy": {"commands": {"allow": ["ls"], "shell": true}}, "audit": {"mode": "strict"},'
                ' "results": {"maxBytes": 5, "perTool": {"a": 1, "b": 2}}, "allowedTools": ["x"]'
            ),
            own(
                '"policy": {"commands": {"shell": false}, "urls": {}}, "audit": {"dir": "/var/audit"},'
                ' "results": {"tool": true, "perTool": {"b": 3}}, "allowedTools": ["y"]'
            ),
        )
        assert settings(config) == Settings(
            policy=PolicySettings(commands=CommandSettings(allowlist=("ls",)), urls=UrlSettings()),
            audit=AuditSettings(mode="strict", dir="/var/audit"),
            results=ResultSettings(max_bytes=5, per_tool={"a": 1, "b": 3}, tool=True),
            allowed_tools=("y",),
        )

    def test_what_a_later_file_says_about_parameters_is_found_first(self) -> None:
        config = self.load(
            own('"policy": {"parameters": {"a": {"p": "url"}}}'),
            own('"policy": {"parameters": {"a": {"p": "none"}}}'),
        )
        assert [each.kind for each in settings(config).policy.parameters] == ["none", "url"]

    def test_a_guard_that_cannot_be_read_in_any_of_them_closes_before_every_rule(self) -> None:
        config = self.load(own('"rules": [{"allow": "*"}]'), own('"audit": {"mode": 1}'))
        assert is_closed(config)

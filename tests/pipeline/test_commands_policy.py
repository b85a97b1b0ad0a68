from pathlib import Path

import pytest

from plait.pipeline.commands import DEFAULT_ALLOW, Approved, CommandPolicy, Refusal

POLICY = CommandPolicy()


def rule(policy: CommandPolicy, command: object) -> str:
    verdict = policy.judge(command)  # type: ignore[arg-type]
    return verdict.rule if isinstance(verdict, Refusal) else "approved"


def script(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder / name


@pytest.mark.requirement("S1-T7.8", "S1-045")
def test_rm_rf_slash_is_blocked() -> None:
    assert rule(POLICY, "rm -rf /") == "C-unlisted"
    assert rule(POLICY, ["rm", "-rf", "/"]) == "C-unlisted"
    assert rule(CommandPolicy(["rm"]), "rm -rf /") == "C-argument"


@pytest.mark.requirement("S1-T7.9")
def test_ls_la_is_allowed_and_known_by_its_file() -> None:
    verdict = POLICY.judge("ls -la")
    assert isinstance(verdict, Approved)
    assert verdict.argv == ("ls", "-la")
    (command,) = verdict.pipelines[0].commands
    assert Path(command.executable).is_absolute()
    assert Path(command.executable).resolve() == Path(command.executable)


@pytest.mark.requirement("BC-24", "BC-30")
def test_the_seeds_modes_mean_what_they_meant() -> None:
    assert rule(CommandPolicy.configured(), "ls") == "approved"
    assert rule(CommandPolicy.configured("anything"), "uname") == "C-unlisted"
    assert rule(CommandPolicy.configured(allowlist=["uname"]), "ls") == "C-unlisted"
    assert rule(CommandPolicy.configured(allowlist=["uname"]), "uname") == "approved"
    assert rule(CommandPolicy.configured("denylist"), "uname -a") == "approved"
    assert rule(CommandPolicy.configured("denylist"), "dd if=x") == "C-denied"
    assert rule(CommandPolicy.configured("denylist", denylist=["uname -a"]), "uname -a -r") == "C-denied"
    assert rule(CommandPolicy.configured("denylist", denylist=["uname -a"]), "uname -r") == "approved"


def test_an_empty_list_given_in_code_allows_nothing() -> None:
    assert rule(CommandPolicy([]), "ls") == "C-unlisted"


@pytest.mark.requirement("BC-25", "K-21")
def test_the_default_list_is_the_seventeen_of_the_seed() -> None:
    assert len(DEFAULT_ALLOW) == 17
    for name in DEFAULT_ALLOW:
        assert rule(POLICY, [name]) == "approved", name


@pytest.mark.requirement("BC-26")
@pytest.mark.parametrize("name", ["cd", "export", "source", "type", "command"])
def test_a_part_of_a_shell_is_no_program(name: str) -> None:
    assert rule(POLICY, [name, "x"]) == "C-builtin"


@pytest.mark.requirement("BC-27", "BC-28", "K-05")
@pytest.mark.parametrize(
    "command",
    ["echo shutdown", "echo reboot now", "echo 'rm -rf /'", "grep sudo x", "echo 'format c:'", "cat 'mkfs'"],
)
def test_no_text_is_searched_for_bad_words(command: str) -> None:
    assert rule(POLICY, command) == "approved"


@pytest.mark.requirement("K-05")
def test_removing_a_folder_is_not_removing_everything() -> None:
    policy = CommandPolicy(["rm"])
    assert rule(policy, "rm -rf /tmp/x") == "approved"
    for command in (
        "rm -rf /",
        "rm  -rf  /",
        "rm -fr /",
        "rm -r -f /",
        "rm -rf //",
        "rm -rf '/'",
        "/bin/rm -rf /",
    ):
        assert rule(policy, command) == "C-argument", command


@pytest.mark.requirement("K-05", "BC-28")
@pytest.mark.parametrize(
    "command",
    [
        "ls\nrm -rf /",
        "ls $(rm -rf /)",
        "ls `rm -rf /`",
        "ls & rm -rf /",
        "ls && rm -rf /",
        "ls || rm -rf /",
        "ls | rm -rf /",
        "ls ; rm -rf /",
        "ls <(rm -rf /)",
        "env rm -rf /",
        "xargs rm",
        "find / -delete",
        "find / -exec rm -rf {} +",
        "awk 'BEGIN{system(\"rm -rf /\")}'",
        "python -c 'import os'",
        "node -e x",
        "npx rimraf /",
        "git -c core.fsmonitor=rm status",
        "/tmp/evil/ls",
        "",
        " ",
        "''",
    ],
)
def test_the_ways_around_the_seed_s_policy_are_closed(command: str) -> None:
    verdict = POLICY.judge(command)
    assert isinstance(verdict, Refusal)
    assert verdict.reason


@pytest.mark.requirement("BC-29")
def test_a_refusal_names_its_rule_and_helps() -> None:
    verdict = POLICY.judge("rm x")
    assert isinstance(verdict, Refusal)
    assert verdict.rule == "C-unlisted"
    assert "'rm' is not an allowed command; these are: cat date" in verdict.reason


@pytest.mark.parametrize(
    "command",
    [
        [],
        [""],
        ["ls", 1],
        ["ls", None],
        None,
        7,
        b"ls",
        {"ls": 1},
        ["ls", "a\0b"],
        ["ls", "\ud800"],
        ["x" * 200_000],
    ],
)
def test_what_no_system_could_run_is_refused_and_not_an_exception(command: object) -> None:
    assert rule(POLICY, command) in {"C-empty", "C-text"}


def test_arguments_are_data_when_they_come_as_a_list() -> None:
    verdict = POLICY.judge(["echo", "$(id)", "a;b", "*", "\n", "~", ""])
    assert isinstance(verdict, Approved)
    assert verdict.argv == ("echo", "$(id)", "a;b", "*", "\n", "~", "")


@pytest.mark.requirement("K-04")
@pytest.mark.parametrize(
    "argv", [["rm", "x"], ["env", "ls"], ["find", ".", "-delete"], ["/tmp/evil/ls"], ["sh", "-c"]]
)
def test_a_list_is_judged_by_the_same_rules_as_a_text(argv: list[str]) -> None:
    verdict = POLICY.judge(argv)
    assert isinstance(verdict, Refusal)
    assert verdict == POLICY.judge(" ".join(argv))


def test_too_many_bytes_are_refused() -> None:
    assert rule(POLICY, ["echo", *["x" * 100_000] * 11]) == "C-text"


# ---- which file runs


@pytest.mark.requirement("K-05")
def test_a_path_must_lead_to_the_very_file_that_the_name_means(tmp_path: Path) -> None:
    real = POLICY.judge("ls")
    assert isinstance(real, Approved)
    executable = real.pipelines[0].commands[0].executable
    (tmp_path / "same").mkdir()
    (tmp_path / "same" / "ls").symlink_to(executable)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ls").symlink_to("/bin/sh")
    (tmp_path / "other" / "cat").symlink_to(executable)
    assert rule(POLICY, executable) == "approved"
    assert rule(POLICY, str(tmp_path / "same" / "ls")) == "approved"
    assert rule(POLICY, str(tmp_path / "other" / "ls")) == "C-executable"
    assert rule(POLICY, str(tmp_path / "other" / "cat")) == "C-executable"
    assert rule(POLICY, str(script(tmp_path / "evil", "ls"))) == "C-executable"
    for relative in ("./ls", "../../bin/ls", "bin/ls"):
        assert rule(POLICY, relative) == "C-executable"


def test_an_entry_may_be_a_path_or_go_on_with_arguments(tmp_path: Path) -> None:
    tool = script(tmp_path / "bin", "tool")
    policy = CommandPolicy([str(tool), "uname -a", "find . -delete"])
    assert rule(policy, "tool x") == "approved"
    assert rule(policy, f"{tool} x") == "approved"
    assert rule(policy, "uname -a") == "approved"
    assert rule(policy, "uname -r") == "C-unlisted"
    assert rule(policy, "find . -delete") == "approved"
    assert rule(policy, "find / -delete") == "C-unlisted"


def test_a_name_is_looked_up_on_the_fixed_path_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = script(tmp_path / "evil", "ls")
    monkeypatch.setenv("PATH", str(evil.parent))
    monkeypatch.chdir(evil.parent)
    verdict = POLICY.judge("ls")
    assert isinstance(verdict, Approved)
    assert verdict.pipelines[0].commands[0].executable != str(evil)
    assert rule(CommandPolicy(path=str(tmp_path)), "ls") == "C-executable"


def test_a_link_on_the_path_to_an_interpreter_is_one(tmp_path: Path) -> None:
    (tmp_path / "tool").symlink_to("/bin/sh")
    policy = CommandPolicy(["tool"], path=str(tmp_path))
    assert rule(policy, ["tool", "-c", "id"]) == "C-launcher"


def test_what_is_denied_is_denied_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "listing").symlink_to("/bin/ls")
    policy = CommandPolicy(deny=["ls"], path=f"{tmp_path}:/usr/bin:/bin")
    assert rule(policy, "listing") == "C-denied"
    assert rule(policy, "python3 -c x") == "C-launcher"


# ---- redirections


def test_redirections_lead_into_the_roots(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "away").symlink_to(tmp_path)
    policy = CommandPolicy(shell=True, roots=[root])
    for good in ("ls > x", f"ls > {root}/x", "ls 2>/dev/null", "ls > sub/x 2>&1", "wc < x", "ls >> 'a b'"):
        assert isinstance(policy.judge(good, cwd=root), Approved), good
    for bad in ("ls > /etc/x", "ls > ../x", f"ls > {root}-sibling/x", "ls > away/x", "wc < /etc/passwd"):
        verdict = policy.judge(bad, cwd=root)
        assert isinstance(verdict, Refusal), bad
        assert verdict.rule == "C-redirection"
    assert isinstance(policy.judge("ls > ../x", cwd=root / "sub"), Approved)
    assert rule(policy, "ls > sub/../x") == "C-redirection"
    assert rule(policy, "ls > x | wc -l && rm x") == "C-unlisted"
    assert rule(CommandPolicy(shell=True), "ls > x") == "C-redirection"


def test_every_command_of_a_plan_is_judged() -> None:
    policy = CommandPolicy(shell=True)
    assert rule(policy, "ls | sort | uniq -c") == "approved"
    assert rule(policy, "ls | xargs rm") == "C-unlisted"
    assert rule(policy, "true && find . -delete") == "C-argument"
    assert rule(policy, "true; /tmp/evil/ls") == "C-executable"


def test_no_parser_is_loaded_for_commands_that_come_as_lists() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from plait.pipeline.commands import CommandPolicy; CommandPolicy().judge(['ls']); "
        "CommandPolicy().judge('ls $x'); print([name for name in sys.modules if 'tree_sitter' in name])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert shown.stdout.strip() == "[]"

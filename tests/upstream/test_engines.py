import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.upstream.engines import RUN_FLAGS, read_options, recognise

OPTIONS = ("--cidfile", "/c/x.cid", "--label", "l")


@pytest.mark.parametrize(
    ("line", "engine", "changed"),
    [
        ("docker run -i img", "docker", "docker run OURS -i img"),
        ("podman run img", "podman", "podman run OURS img"),
        ("/usr/local/bin/docker run img", "/usr/local/bin/docker", "/usr/local/bin/docker run OURS img"),
        ("docker container run img", "docker", "docker container run OURS img"),
        ("docker --context run run img", "docker --context run", "docker --context run run OURS img"),
        ("docker -H tcp://h -D run img", "docker -H tcp://h -D", "docker -H tcp://h -D run OURS img"),
        ("docker -Htcp://h run img", "docker -Htcp://h", "docker -Htcp://h run OURS img"),
        ("docker -Dc x run img", "docker -Dc x", "docker -Dc x run OURS img"),
        (
            "docker --log-level=debug run img",
            "docker --log-level=debug",
            "docker --log-level=debug run OURS img",
        ),
        (
            "podman --remote --url u run img",
            "podman --remote --url u",
            "podman --remote --url u run OURS img",
        ),
        ("sudo docker run img", "sudo docker", "sudo docker run OURS img"),
        (
            "sudo -n -u root -- docker run img",
            "sudo -n -u root -- docker",
            "sudo -n -u root -- docker run OURS img",
        ),
        ("env -u X A=1 B= docker run img", "env -u X A=1 B= docker", "env -u X A=1 B= docker run OURS img"),
        (
            "sudo A=1 nice -n 5 podman run i",
            "sudo A=1 nice -n 5 podman",
            "sudo A=1 nice -n 5 podman run OURS i",
        ),
        ("docker run", "docker", "docker run OURS"),
    ],
)
def test_a_command_that_runs_a_container_is_recognised(line: str, engine: str, changed: str) -> None:
    command = recognise(shlex.split(line))
    assert command is not None
    assert shlex.join(command.engine) == engine
    assert shlex.join(command.with_options("OURS")) == changed
    assert command.cidfile is None


@pytest.mark.parametrize(
    "line",
    [
        "docker exec -i box server",
        "docker compose run server",
        "docker-compose run server",
        "docker container exec run x",
        "docker --context run",
        "docker start -ai box",
        "npx docker run img",
        "python -m docker run img",
        "sh -c 'docker run img'",
        "env -S 'docker run img'",
        "env - docker run img",
        "sudo -u docker run img",
        "sudo",
        "docker",
        "",
    ],
)
def test_any_other_command_is_left_alone(line: str) -> None:
    assert recognise(shlex.split(line)) is None


@pytest.mark.parametrize(
    ("line", "cidfile"),
    [
        ("docker run --cidfile a img", "a"),
        ("docker run --rm -it --cidfile=a img", "a"),
        ("docker run --cidfile a --cidfile b img", "b"),
        ("docker run --name --cidfile img", None),
        ("docker run -e --cidfile=x img", None),
        ("docker run -itv /a:/b --cidfile a img", "a"),
        ("docker run -itv/a:/b --cidfile a img", "a"),
        ("docker run --rm img --cidfile a", None),
        ("docker run --rm=false -- img --cidfile a", None),
        ("docker run --cidfile", ""),
    ],
)
def test_a_cidfile_of_the_users_own_is_found_and_only_among_the_options(
    line: str, cidfile: str | None
) -> None:
    command = recognise(shlex.split(line))
    assert command is not None
    assert command.cidfile == cidfile


WORDS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        [*RUN_FLAGS, "run", "container", "docker", "podman", "sudo", "env", "A=1", "-", "--", "-it"]
    ),
    st.sampled_from(["--cidfile", "--cidfile=x", "-H", "--context", "-e", "--name=run", "img"]),
)


@settings(max_examples=600, deadline=None)
@given(st.lists(WORDS, max_size=8), st.booleans())
def test_options_are_put_in_right_behind_run_and_nothing_else_changes(words: list[str], engine: bool) -> None:
    argv = ["docker", *words] if engine else words
    command = recognise(argv)
    if command is None:
        return
    changed = list(command.with_options(*OPTIONS))
    place = len(command.start)
    assert changed[place : place + len(OPTIONS)] == list(OPTIONS)
    assert changed[:place] + changed[place + len(OPTIONS) :] == argv
    assert changed[place - 1] == "run"
    assert tuple(argv[: len(command.engine)]) == command.engine


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(RUN_FLAGS)), max_size=4), st.text(min_size=1, max_size=8), st.lists(WORDS)
)
def test_what_stands_behind_the_image_is_the_containers_own(
    flags: list[str], value: str, rest: list[str]
) -> None:
    command = recognise(["docker", "run", *flags, "--cidfile", value, "img", *rest])
    assert command is not None
    assert command.cidfile == value


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS), st.integers(0, 3))
def test_reading_options_ends_inside_the_words(words: list[str], start: int) -> None:
    start = min(start, len(words))
    _, end = read_options(words, start, RUN_FLAGS)
    assert start <= end <= len(words)

from plait.upstream.stderr import StderrLog


def test_the_newest_lines_are_kept_and_the_rest_is_counted() -> None:
    log = StderrLog(kept=20)
    log.feed(b"one\ntwo\n")
    log.feed(b"three\nfour\nfive\nsix\n")
    assert log.lines == ["two", "three", "four", "five", "six"]
    assert log.dropped == 1
    assert log.last == "six"


def test_a_line_may_come_in_pieces_and_the_unfinished_one_counts() -> None:
    log = StderrLog()
    log.feed(b"Err")
    log.feed(b"or: no zod\nbye")
    assert log.lines == ["Error: no zod", "bye"]
    assert log.last == "bye"


def test_a_flood_is_bounded_in_memory() -> None:
    log = StderrLog()
    for _ in range(200):
        log.feed(b"x" * 100_000)
    assert sum(map(len, log.lines)) <= 64 * 1024
    log.feed(b"\n" + b"line\n" * 100_000)
    assert sum(map(len, log.lines)) <= 64 * 1024


def test_escape_sequences_cannot_reach_a_terminal() -> None:
    log = StderrLog()
    log.feed(b"\x1b]52;c;evil\x07\n")
    assert "\x1b" not in log.last

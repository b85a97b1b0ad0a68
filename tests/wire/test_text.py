from plait.wire.text import printable


def test_escape_sequences_and_forged_lines_are_spelled_out() -> None:
    assert printable("a\x1b[31mb\r\x9b2Jc\u2028d\te") == "a\\x1b[31mb\\x0d\\x9b2Jc\\x2028d\te"

"""Does a URI come from this template? Enough of RFC 6570 to find the owner, without backtracking."""

import re

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_ZEROS = bytes.maketrans(bytes(range(256)), b"0" * 256)


class Template:
    """A URI template, taken apart once into its literal pieces and what stands between them."""

    def __init__(self, text: str) -> None:
        self.text = text
        pieces = _EXPRESSION.split(text)
        self._literals = [piece.encode() for piece in pieces[0::3]]
        operators = zip(pieces[1::3], pieces[2::3], strict=True)
        # `{x}` stands for one segment; `{+x}`, `{x*}` and the other operators for anything, or nothing.
        self._one_segment = [not operator and not names.endswith("*") for operator, names in operators]
        self.literal = sum(len(piece) for piece in pieces[0::3])
        """How many characters of it are fixed: the more, the better a match."""

    def matches(self, uri: str) -> bool:
        line = uri.encode()
        if not self._one_segment:
            return line == self._literals[0]
        fixed = len(self._literals[0]) + len(self._literals[-1])
        fits = line.startswith(self._literals[0]) and line.endswith(self._literals[-1])
        return fits and len(line) >= fixed and self._passes(line)

    def _passes(self, line: bytes) -> bool:
        """Follow every way through the template at once: bit i of `here` says that i can be reached.

        A way that turns out wrong is never gone back on, so no template of a hostile server can make a
        long URI expensive: each character of the template costs two operations on one long number.
        """
        places: dict[int, int] = {}
        segment = ~_places(line, ord("/")) & ((1 << len(line)) - 1)
        here = 1 << len(self._literals[0])
        for index, one_segment in enumerate(self._one_segment):
            if one_segment:
                step = (here & segment) << 1
                # All that can be reached from `step` over bits of `segment`: the sum's carry runs along them.
                here = (((step & segment) + segment) ^ segment) | step
            else:
                here = -(here & -here) & ((2 << len(line)) - 1)
            if index == len(self._one_segment) - 1:
                break
            for byte in self._literals[index + 1]:
                if byte not in places:
                    places[byte] = _places(line, byte)
                here = (here & places[byte]) << 1
        return bool(here >> (len(line) - len(self._literals[-1])) & 1)


def _places(line: bytes, byte: int) -> int:
    """Where this byte is, as the bits of a number."""
    table = bytearray(_ZEROS)
    table[byte] = ord("1")
    return int(line.translate(table)[::-1] or b"0", 2)

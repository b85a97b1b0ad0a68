"""A thousand random tamperings with an audit folder, and every one of them shows (fault matrix, row 47)."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ledgers import flipped, write_stream
from plait.pipeline.ledger_chain import SLOT, START, Key, slot
from plait.pipeline.ledger_check import check
from plait.pipeline.ledger_files import KEY, REGISTER, load_key, segments

Tampering = Callable[[random.Random, Path], None]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Streams of several files, ended well and not, as a folder has them after some time."""
    folder = tmp_path_factory.mktemp("archive")
    for calls, close in ((12, True), (1, False), (25, False), (6, True)):
        write_stream(folder, calls, close=close, segment_bytes=3000)
    assert check(folder, load_key(folder / KEY)).problems == []
    return folder


def pick(chance: random.Random, folder: Path) -> Path:
    return chance.choice(sorted(folder.glob("*.jsonl")))


def flip_a_bit(chance: random.Random, folder: Path) -> None:
    path = chance.choice([pick(chance, folder), pick(chance, folder), folder / REGISTER, folder / KEY])
    data = path.read_bytes()
    path.write_bytes(flipped(data, chance.randrange(len(data) * 8)))


def swap_lines(chance: random.Random, folder: Path) -> None:
    path = pick(chance, folder)
    lines = path.read_bytes().splitlines(keepends=True)
    if len(lines) > 1:
        first, second = chance.sample(range(len(lines)), 2)
        lines[first], lines[second] = lines[second], lines[first]
    path.write_bytes(b"".join(lines))


def delete_lines(chance: random.Random, folder: Path) -> None:
    path = pick(chance, folder)
    lines = path.read_bytes().splitlines(keepends=True)
    start = chance.randrange(len(lines))
    del lines[start : start + chance.randint(1, 3)]
    path.write_bytes(b"".join(lines))


def insert_a_line(chance: random.Random, folder: Path) -> None:
    """One that we sealed ourselves, from anywhere; or one that somebody made up."""
    path = pick(chance, folder)
    lines = path.read_bytes().splitlines(keepends=True)
    foreign = chance.choice(pick(chance, folder).read_bytes().splitlines(keepends=True))
    forged = Key(chance.randbytes(32)).line(len(lines) + 1, START, b'{"event":"closed"}')[0]
    lines.insert(chance.randint(0, len(lines)), chance.choice([foreign, forged, b"\n", b"{}\n"]))
    path.write_bytes(b"".join(lines))


def insert_bytes(chance: random.Random, folder: Path) -> None:
    path = chance.choice([pick(chance, folder), folder / REGISTER])
    data = path.read_bytes()
    place = chance.randint(0, len(data))
    path.write_bytes(data[:place] + chance.randbytes(chance.randint(1, 40)) + data[place:])


def delete_bytes(chance: random.Random, folder: Path) -> None:
    path = chance.choice([pick(chance, folder), folder / REGISTER])
    data = path.read_bytes()
    place = chance.randrange(len(data))
    path.write_bytes(data[:place] + data[place + chance.randint(1, 40) :])


def truncate(chance: random.Random, folder: Path) -> None:
    path = chance.choice([pick(chance, folder), pick(chance, folder), folder / REGISTER])
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def cut_whole_lines(chance: random.Random, folder: Path) -> None:
    """The end of a stream, so that what is left is in perfect order."""
    stream = chance.choice(sorted(segments(folder)))
    path = segments(folder)[stream][-1]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: chance.randrange(len(lines))]))


def remove_a_file(chance: random.Random, folder: Path) -> None:
    chance.choice([pick(chance, folder), segments(folder).popitem()[1][-1], folder / REGISTER]).unlink()


def exchange_files(chance: random.Random, folder: Path) -> None:
    first, second = chance.sample(sorted(folder.glob("*.jsonl")), 2)
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


def exchange_entries(chance: random.Random, folder: Path) -> None:
    register = folder / REGISTER
    data = register.read_bytes()
    entries = [data[start : start + SLOT] for start in range(0, len(data), SLOT)]
    first, second = chance.sample(range(len(entries)), 2)
    entries[first], entries[second] = entries[second], entries[first]
    register.write_bytes(b"".join(entries))


def wind_back(chance: random.Random, folder: Path) -> None:
    """Cut the end off, and tell the register so, as well as that can be done without the key."""
    stream = chance.choice(sorted(segments(folder)))
    path = segments(folder)[stream][-1]
    lines = path.read_bytes().splitlines(keepends=True)
    kept = lines[: chance.randrange(1, len(lines))]
    path.write_bytes(b"".join(kept))
    last = json.loads(kept[-1])
    data = (folder / REGISTER).read_bytes()
    entries = [data[start : start + SLOT] for start in range(0, len(data), SLOT)]
    for number, entry in enumerate(entries):
        if stream.encode() in entry:
            entries[number] = slot(stream, last["seq"], chance.choice([last["hash"], last["prev"]]).encode())
    (folder / REGISTER).write_bytes(b"".join(entries))


TAMPERINGS: list[Tampering] = [
    flip_a_bit,
    flip_a_bit,
    swap_lines,
    delete_lines,
    insert_a_line,
    insert_bytes,
    delete_bytes,
    truncate,
    cut_whole_lines,
    remove_a_file,
    exchange_files,
    exchange_entries,
    wind_back,
]


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.iterdir()}


def restore(whole: dict[Path, bytes]) -> None:
    for path, data in whole.items():
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)


@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_random_tamperings_all_show(archive: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path
    whole = {folder / path.name: data for path, data in contents(archive).items()}
    for path, data in whole.items():
        path.write_bytes(data)
        path.chmod(0o600)
    done = 0
    while done < 100:
        tampering = chance.choice(TAMPERINGS)
        tampering(chance, folder)
        if contents(folder) != whole:
            done += 1
            try:
                seen = check(folder, load_key(folder / KEY)).problems
            except OSError:
                continue  # the key itself was damaged: nothing verifies
            finally:
                touched = {path.name for path, data in whole.items() if contents(folder).get(path) != data}
                restore(whole)
            assert seen, f"{tampering.__name__} of {touched} does not show"
    assert check(folder, load_key(folder / KEY)).problems == []

import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from plait.providers.tools.notes import Notes

WRITER = """
import sys
from pathlib import Path
from plait.providers.tools.notes import Notes
notes = Notes(Path(sys.argv[1]))
for number in range(40):
    notes.add(f"{sys.argv[2]} {number}")
notes.close()
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.sqlite"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), f"process{number}"]) for number in range(3)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    book = Notes(path)
    assert book.count() == 120
    assert len(book.search("process1", 100)) == 40
    book.close()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.text(min_size=1, max_size=40), query=st.text(max_size=40))
@example(content="x", query='"*" OR NEAR("')
@example(content="_", query="_")
@example(content="\0", query="\0")
def test_no_query_whatever_it_is_fails_and_what_a_note_holds_is_found(
    tmp_path: Path, content: str, query: str
) -> None:
    book = Notes(tmp_path / "memory.sqlite")
    try:
        number = book.add(content)
        assert book.one(number)[0].content == content
        book.search(query, 10)
        if content.strip() and "\0" not in content:
            assert number in [note.number for note in book.search(content, 100_000)]
    finally:
        book.close()

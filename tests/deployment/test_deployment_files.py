"""Files that are not documents: each is refused in one plain line."""

from pathlib import Path

import pytest
from deployment_texts import told

from comesh.deployment.load import load, load_bytes
from comesh.deployment.tree import MAX_BYTES, MAX_DEPTH


def only(data: bytes) -> str:
    outcome = load_bytes(data, "d.yaml")
    assert outcome.deployment is None
    [problem] = outcome.problems
    return str(problem)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "d.yaml:1: the document is empty; comesh new FILE writes a first one"),
        (b"# only a comment\n", "d.yaml:1: the document is empty; comesh new FILE writes a first one"),
        (b"- a\n", "d.yaml:1: the document is not a mapping"),
        (b"a: \xff\n", "d.yaml:1: the file is not UTF-8 text (byte 0xff); save it as UTF-8"),
        ("nodes: {}".encode("utf-16"), "d.yaml: the file is UTF-16; save it as UTF-8"),
        (b"\x7fELF\x00\x01", "d.yaml:1: the file is binary, not text; is this the right file?"),
        (b"nodes:\n\ta: 1\n", "d.yaml:2: a tab is used for indentation; YAML allows spaces only"),
        (b"nodes:\n  [1, 2\ndevices: 3\n", "d.yaml:2: the bracket that opens here is not closed"),
        (b"name: 'open\n", "d.yaml:1: a quote is opened but never closed; close it"),
        (b"name: a: b\n", "d.yaml:1: a ':' where none can be; check the indentation"),
        (b"nodes:\n  a: 1\n b: 2\n", "d.yaml:3: the indentation does not fit the lines above"),
        (b"name: @x\n", "d.yaml:1: a value that begins with '@' needs quotes; write \"@x\""),
        (b"name: *x\n", "d.yaml:1: '*x' refers to nothing; mark the value with '&x' further up"),
        (b"nodes: &a [*a]\n", "d.yaml:1: '*a' is used inside of itself"),
        (b"name: a\n---\nname: b\n", "d.yaml:2: a second document begins here; keep one document per file"),
        (b"%YAML 1.1\n---\nname: a\n", "d.yaml:2: only YAML 1.2 is read; remove the %YAML line"),
        (b'name: "\\UFFFFFFFF"\n', "d.yaml"),
    ],
)  # fmt: skip
def test_not_a_document(data: bytes, expected: str) -> None:
    assert only(data).startswith(expected)


def test_too_large() -> None:
    assert only(b"#" * (MAX_BYTES + 1)) == (
        "d.yaml: the file has 1,000,001 bytes; more than 1,000,000 are not read; is this the right file?"
    )


@pytest.mark.parametrize("data", [b"a: " + b"[" * 5000, b"a: " + b"{a: " * 5000, b"- " * 5000])
def test_too_deep(data: bytes) -> None:
    assert f"nested more than {MAX_DEPTH} levels deep" in only(data)


def test_alias_bombs_are_counted_not_expanded() -> None:
    lines = ["x-0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    lines += [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert "grows beyond 400,000 values" in only("\n".join(lines).encode())


def test_chains_of_aliases_cannot_nest_deeper_than_text() -> None:
    lines = ["x-0: &a0 [1]"] + [f"x-{n}: &a{n} [*a{n - 1}]" for n in range(1, 100)]
    assert f"nested more than {MAX_DEPTH} levels deep" in only("\n".join(lines).encode())


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "none.yaml", "there is no such file"),
        (tmp_path, "this is a directory"),
        (tmp_path / ("x" * 300), "cannot be read"),
        ("a\0b", "not the name of a file"),
    ):
        outcome = load(path)
        assert outcome.could_not_read
        assert words in outcome.problems[0].what


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert "may not be read by you" in load(tmp_path / "d.yaml").problems[0].what


def test_a_byte_order_mark_is_no_mistake() -> None:
    assert "no nodes" in told("\ufeffname: x")[0]

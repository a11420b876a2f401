"""The pages: nothing is fetched, links lead somewhere, and no text becomes markup."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from conformance.record import Record
from conformance.reporting.html import write_pages
from conformance.reporting.read import read
from tests.conformance.reporting.runs import (
    ALL,
    FAILURE,
    FEATURES,
    HOSTILE,
    KNOWN,
    MEASURED,
    MESSAGE,
    PASS,
    SCRIPT,
    WHOLE,
    save,
)  # fmt: skip

_VOID = {"meta", "link", "input", "img", "br"}


@dataclass
class Page(HTMLParser):
    """What a page has: tags, links, ids, and its text."""

    path: Path
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == [], "tags that are not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] or "" for _, attributes in self.tags if "id" in attributes]

    @property
    def links(self) -> list[str]:
        return [attributes["href"] or "" for tag, attributes in self.tags if tag == "a"]


def pages(folder: Path, records: list[Record]) -> dict[str, Page]:
    index = write_pages(read(save(folder, records)), folder / "html")
    return {str(path.relative_to(index.parent)): Page(path) for path in index.parent.rglob("*.html")}


NASTY = [
    replace(WHOLE, op=HOSTILE, family=HOSTILE, dtype=HOSTILE, notes=(HOSTILE,), kernels=(HOSTILE,), bound=HOSTILE),
    replace(FAILURE, op=HOSTILE, family=HOSTILE, dtype=HOSTILE, message=HOSTILE, features=HOSTILE, kernels=(HOSTILE,)),
    replace(KNOWN, known=(HOSTILE,), message=HOSTILE, helpers={HOSTILE: 1}),
]


@pytest.mark.parametrize("records", [ALL, NASTY, [PASS]], ids=["all", "nasty", "pass"])
def test_nothing_is_fetched_and_links_lead_somewhere(tmp_path: Path, records: list[Record]) -> None:
    found = pages(tmp_path / "run", records)
    for name, page in found.items():
        assert len(page.ids) == len(set(page.ids)), name
        for tag, attributes in page.tags:
            assert tag not in ("img", "iframe", "object", "embed", "video", "audio", "base"), name
            assert "src" not in attributes, name
            assert not any(attribute.startswith("on") for attribute in attributes), name
            assert tag != "link" or attributes["href"] == "data:,", name
        for style in re.findall("<style>(.*?)</style>", page.path.read_text(), re.DOTALL):
            assert "url(" not in style
            assert "@import" not in style
        for link in page.links:
            target, fragment = urldefrag(link)
            path = (page.path.parent / unquote(target)).resolve() if target else page.path.resolve()
            other = next(page for page in found.values() if page.path.resolve() == path)
            assert not fragment or unquote(fragment) in other.ids, link


def test_index(tmp_path: Path) -> None:
    page = pages(tmp_path / "run", ALL)["index.html"]
    for text in ("PyTorch 2.15.0 on air", "no Mac was involved", "build sha256 ab12", "dot on float32/float16: no"):
        assert text in page.text
    cells = [attributes["title"] for tag, attributes in page.tags if tag == "a" and "title" in attributes]
    assert cells == [
        "unsupported: forward",
        "unsupported: forward",
        *("error: forward", "crash: forward", "timeout: forward", "flaky: forward"),
        "pass: forward",
        "fail: forward",
        *("fixed: witness", "known: witness"),
    ]
    assert "✗ F" in page.text, "a verdict is told by more than its colour"
    (form,) = [attributes for tag, attributes in page.tags if tag == "form"]
    assert "hidden" in form, "without scripts there is nothing to filter with"
    rows = [attributes for tag, attributes in page.tags if tag == "tr" and "data-op" in attributes]
    assert [(row["data-family"], row["data-op"]) for row in rows] == [("blas", "dot"), ("unary", "exp")]
    assert rows[1]["data-verdicts"] == "fail fixed known pass"


def test_page_of_an_op(tmp_path: Path) -> None:
    page = pages(tmp_path / "run", ALL)["ops/exp.html"]
    for text in (MESSAGE, FEATURES, " ".join(SCRIPT.split()), "exp_dense_float_float", "0.5", "89.0 (0x42b20000)"):
        assert text in page.text
    assert '"0x42b20000"' in page.text, "the case as JSON"
    assert "Time" in page.text
    assert "12.5" in page.text


def test_figures_are_there_only_if_measured(tmp_path: Path) -> None:
    found = pages(tmp_path / "run", [PASS])
    assert not {"Time", "Memory", "Work"} & {text for page in found.values() for text in page.texts}
    assert set(pages(tmp_path / "work", [PASS, replace(MEASURED, timing=(), memory=())])["index.html"].ids) == {
        "matrix", "filter", "Verdicts", "Largest-errors-that-passed", "Work", "provenance",
    }  # fmt: skip


def test_hostile_texts_are_texts(tmp_path: Path) -> None:
    for page in pages(tmp_path / "run", NASTY).values():
        assert "onerror=alert(1)>" in page.text
        assert len([tag for tag, _ in page.tags if tag == "script"]) == 1


def test_ops_have_pages_of_their_own(tmp_path: Path) -> None:
    records = [replace(PASS, op=op) for op in ("a.b", "A.b", "a/b", "a b", "../x")]
    found = pages(tmp_path / "run", records)
    assert len(found) == 1 + len(records)
    assert len({name.lower() for name in found}) == len(found)


def test_pages_of_an_earlier_report_go_and_nothing_else(tmp_path: Path) -> None:
    folder = save(tmp_path / "run", [PASS, replace(PASS, op="log")])
    write_pages(read(folder), folder / "html")
    (folder / "html" / "ops" / "mine.html").write_text("<p>mine")
    (folder / "records.jsonl").write_text(PASS.line())
    write_pages(read(folder), folder / "html")
    assert sorted(path.name for path in (folder / "html" / "ops").iterdir()) == ["exp.html", "mine.html"]

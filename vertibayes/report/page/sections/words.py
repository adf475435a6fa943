"""The words that the page uses, explained in a sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vertibayes.report.page.content import Section, Term, Words
from vertibayes.report.page.glossary import WORDS

PARTS = ("text", "items", "rows", "title", "blocks", "parts", "lead")


def words_section(sections: Iterable[Section]) -> Section:
    """Return the section of the words to which other sections link."""
    used = {each.word for section in sections for each in terms_of(section)}
    items = [(word, *WORDS[word]) for word in WORDS if word in used]
    items.sort(key=lambda item: item[1].lower())
    return Section(
        "words",
        "Words",
        ("Each word that the page links is explained here in a sentence.",),
        [Words(items)],
    )


def terms_of(content: object) -> Iterator[Term]:
    """Yield all links to words inside parts of the page."""
    if isinstance(content, Term):
        yield content
    elif isinstance(content, list | tuple):
        for part in content:
            yield from terms_of(part)
    else:
        for name in PARTS:
            inside = getattr(content, name, None)
            if isinstance(inside, list | tuple):
                yield from terms_of(inside)

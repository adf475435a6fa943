"""Draw the message figures of docs/protocols as pictures, from their text in the pages.

    python docs/figures/messages.py

The text is the source: change a figure in its page and run this. `tests/test_figures.py` fails if
a picture is not that of its page, or if the docstring of the protocol's module has other messages.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from figure_text import Block, Columns, Names, figures
from sequence import Drawing, described

PAGES = Path(__file__).resolve().parents[1] / "protocols"
PICTURES = Path(__file__).resolve().parent / "messages"


@dataclass(frozen=True)
class Picture:
    """The parties of a page's picture, from left to right, and their other names in its figures."""

    parties: str
    also: Mapping[str, str] = field(default_factory=dict)
    modules: Columns = ()

    @property
    def columns(self) -> Columns:
        """The columns of the picture."""
        return names_in(self.parties)

    @property
    def names(self) -> Names:
        """The columns that each name of the figures stands for."""
        own = {party: (party,) for party in self.columns}
        return own | {name: names_in(parties) for name, parties in self.also.items()}


def names_in(text: str) -> Columns:
    """Return names that are separated by bars."""
    return tuple(part.strip() for part in text.split("|"))


PROTOCOLS = {
    "additive_scheme": Picture(
        "dealer | P_k | aggregator", modules=("mpc/vertibayes_mpc/additive_scheme/__init__.py",)
    ),
    "alignment": Picture(
        "dealer | s_1 | owner | s | s+1 | last | matcher",
        {"last site": "last", "sites": "s | s+1 | last", "shares": "s_1 | s", "..": "s+1"},
        ("mpc/vertibayes_mpc/alignment/__init__.py",),
    ),
    "argmax": Picture(
        "dealer | S_1 | S_s | analyst",
        {
            "all": "S_1 | S_s",
            "locally": "S_1 | S_s",
            "all and the analyst": "S_1 | S_s | analyst",
            "all and analyst": "S_1 | S_s | analyst",
        },
        ("mpc/vertibayes_mpc/argmax/__init__.py",),
    ),
    "calibration": Picture(
        "analyst | u | v",
        {"sites": "u | v", "site": "u | v"},
        ("protocols/vertibayes_protocols/queries/calibration/consensus.py",),
    ),
    "choices": Picture(
        "analyst | site | other sites | dealer",
        {
            "sites": "site | other sites",
            "each site": "site | other sites",
            "all": "analyst | site | other sites | dealer",
        },
        ("protocols/vertibayes_protocols/queries/releases/plan.py",),
    ),
    "federated_naive_bayes": Picture(
        "node i | new node | aggregator | random peer",
        {"node i, at intervals": "node i", "peer": "random peer"},
    ),
    "frequency_oracles": Picture(
        "person | aggregator", modules=("mpc/vertibayes_mpc/oracles/__init__.py",)
    ),
    "local_naive_bayes": Picture(
        "person | aggregator",
        {"all": "person | aggregator"},
        ("protocols/vertibayes_protocols/local_reports/__init__.py",),
    ),
    "lookups": Picture(
        "dealer | P | Q | h_1 | h_s",
        {"all holders": "h_1 | h_s"},
        ("mpc/vertibayes_mpc/lookups/two_sites.py", "mpc/vertibayes_mpc/lookups/many_sites.py"),
    ),
    "masked_sum": Picture("P | aggregator", modules=("mpc/vertibayes_mpc/masked_sum/__init__.py",)),
    "masked_tables": Picture(
        "dealer | P | s | R | sites | analyst",
        {
            "each other site": "sites",
            "whoever counts with T": "sites",
            "s, other holders of L": "s",
        },
        ("mpc/vertibayes_mpc/masked_tables/__init__.py",),
    ),
    "membership": Picture("aggregator | j", modules=("mpc/vertibayes_mpc/membership/__init__.py",)),
    "naive_bayes": Picture(
        "analyst | P_k",
        {"sites": "P_k", "site": "P_k"},
        ("protocols/vertibayes_protocols/queries/sums/sums.py",),
    ),
    "naive_bayes_vertical": Picture(
        "dealer | P_k | analyst",
        {"all": "dealer | P_k | analyst"},
        (
            "protocols/vertibayes_protocols/queries/columns/publish.py",
            "protocols/vertibayes_protocols/queries/columns/scores.py",
        ),
    ),
    "paillier": Picture(
        "owner | second | last | analyst", modules=("mpc/vertibayes_mpc/paillier/counting.py",)
    ),
    "product_scheme": Picture(
        "dealer | P_k | aggregator", modules=("mpc/vertibayes_mpc/product_scheme/__init__.py",)
    ),
    "roster": Picture("party | coordinator", {"parties": "party"}),
    "scalar_product": Picture(
        "dealer | 1 | i > 1 | receiver | i not in K | i in K",
        {
            "i": "1 | i > 1",
            "all others": "1 | i > 1",
            "the others": "i not in K | i in K",
            "all not in K": "i not in K",
        },
        ("mpc/vertibayes_mpc/scalar_product/__init__.py",),
    ),
    "sessions": Picture(
        "analyst | site | other sites | dealer",
        {
            "sites": "site | other sites",
            "parties": "site | other sites | dealer",
            "party": "site",
            "later sites": "other sites",
            "earlier sites": "other sites",
            "all": "analyst | site | other sites | dealer",
        },
        (
            "protocols/vertibayes_protocols/queries/opening/begin.py",
            "protocols/vertibayes_protocols/queries/opening/meet.py",
            "protocols/vertibayes_protocols/queries/opening/describe.py",
            "protocols/vertibayes_protocols/queries/opening/commit.py",
        ),
    ),
    "shuffled_tables": Picture(
        "dealer | P | other sites | h_1 | h_i | h_i+1 | h_k | analyst",
        {
            "each other site": "other sites",
            "h_1 .. h_k": "h_1 | h_i | h_i+1 | h_k",
            "h_1 .. h_k-1": "h_1 | h_i | h_i+1",
        },
        ("mpc/vertibayes_mpc/shuffled_tables/__init__.py",),
    ),
    "table_lookups": Picture(
        "dealer | h_1 | h_s | h_t | analyst",
        {"S": "h_1 | h_s | h_t"},
        ("mpc/vertibayes_mpc/table_lookups/__init__.py",),
    ),
    "transport": Picture(
        "analyst | a | b",
        {"all": "analyst | a | b", "any": "analyst | a | b"},
        (
            "protocols/vertibayes_protocols/transports/connection.py",
            "protocols/vertibayes_protocols/transports/control.py",
        ),
    ),
    "zero_shares": Picture("P | analyst", modules=("mpc/vertibayes_mpc/sharing.py",)),
}


def drawn(name: str) -> str:
    """Return the picture of a page."""
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    picture = PROTOCOLS[name]
    found: list[Block] = list(figures(page, picture.names))
    title = f"Messages of the page {page.splitlines()[0].lstrip('# ')!r}"
    return Drawing(picture.columns, found).svg(title, described(found))


def main() -> None:
    """Write all pictures."""
    PICTURES.mkdir(exist_ok=True)
    for name in PROTOCOLS:
        (PICTURES / f"{name}.svg").write_text(drawn(name), encoding="utf-8")


if __name__ == "__main__":
    main()

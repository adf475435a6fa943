"""Table lookups: shares of the rows that records have in public tables, at indices that are secret.

Sites h_1 .. h_k hold the axes of a public table with at most 2^b rows. The index of a record is the
sum of what its sites add for their own columns: c = c_1 + .. + c_k. For each record and table:

    Turn      h_s -> h_t       c_s + r_s   mod 2^b              the sum: m = c + r
    Deal      dealer -> h_1    e_r - sum_{s > 1} U_s    e_r: the unit vector at r = r_1 + ..
    locally                    sum_j U_s[j] table[m - j]        shares of table[c], in all columns
    Show      S -> analyst     the sum over all tables, plus zero shares

r_s is a stream of h_s and the dealer, and so is U_s for s > 1. A table whose axes one site holds is
looked up by this site alone. The sums over tables are added up among all sites that hold an axis of
one. `show_rows` reveals them to the analyst; without this step they remain shares.

Security: honest-but-curious. Against the analyst and all sites except one, what this site sends is
uniform because of its r, and what the dealer sends is uniform because of its U, or received by this
site itself. What the analyst receives is simulated from the sums. The dealer receives nothing. The
dealer with the analyst learns the sums alone: the dealer knows r and the streams, so that it could
read m off a share of the sums, which zero shares prevent. The dealer with one site reads indices.
Leakage: to the analyst the sums; to all the number of records, who holds which axes, the sizes of
the tables; to the sites the tables.
Cost: for a table with 2^b rows among k sites, 8 2^b bytes dealt for each record, and k (k - 1)
times b bits sent; 8 bytes for each record and column from each site to the analyst. 3 rounds,
and one for each further part of the records.

References
----------
Ishai, Kushilevitz, Meldgaard, Orlandi, Paskin-Cherniavsky (2013). On the power of correlated
randomness in secure computation. doi:10.1007/978-3-642-36594-2_34 (one-time truth tables).
"""

from vertibayes_mpc.table_lookups.counts import CountPlan, deal_counts, share_counts
from vertibayes_mpc.table_lookups.rows import (
    TableLookupPlan,
    Tables,
    deal_rows,
    open_rows,
    share_rows,
    show_rows,
)

__all__ = [
    "CountPlan",
    "TableLookupPlan",
    "Tables",
    "deal_counts",
    "deal_rows",
    "open_rows",
    "share_counts",
    "share_rows",
    "show_rows",
]

"""Contingency tables of any width: count by shuffle.

A table is the multiset of its records' joint codes. The holders h_1 .. h_k of its columns reveal
these codes to the analyst in an order that nobody knows. x_j are the codes of a column,
xhat_j = x_j + a_j the masked codes (`vertibayes_mpc.commitments`), t_j the strides of the table's
axes. All arithmetic is modulo 2^b, the smallest ring that holds the table's cells.

    Chain     h_1             w_0 = sum_j t_j xhat_j       its own columns unmasked
              h_i -> h_i+1    w_i = pi_i(w_i-1) + r_i
    Deal      dealer -> h_1   m = pi_k(.. pi_1(sum_j t_j a_j) + r_1 ..) + r_k - sum_{i>1} d_i
    Open      h_k -> analyst  sigma(w_k - d_k) + Z_k
              h_1 -> analyst  sigma(-m) + Z_1
              h_i -> analyst  sigma(-d_i) + Z_i
              analyst         the sum: all joint codes, in a uniform order; it counts them

The permutation pi_i, the mask r_i and the share d_i are streams of h_i and the dealer. sigma is a
permutation that the sites draw from `Holder.sites_key`, which neither the dealer nor the analyst
knows. The Z_i are zero shares (`vertibayes_mpc.sharing`). Each has a label that names the study,
the query and the table: no stream is used twice. A holder counts a table of its columns alone
without messages.

Unless missing values are asked for, records with a missing value must drop out, and nobody may know
which records these are. u_j are the flags of missing values, uhat_j = u_j + c_j; modulo 2^48:

    Noise     h_i -> h_1      sum_j rho_ij uhat_j + q_i    its own flags unmasked
    Chain     h_1             w'_0 = the sum of all noises
              h_i -> h_i+1    w'_i = pi_i(w'_i-1) + r'_i
    Deal      dealer -> h_1 .. h_k    m' = what the masks add to w'_k
    Tags      h_k -> h_1 .. h_k-1    w'_k;   w'_k - m' is 0 for a complete record, else uniform
    Open                      as above, for the complete records only

Security: honest-but-curious. Against the analyst and all sites except one, the messages of this
site are simulated from the revealed tables and, where records drop out, from the number of complete
records. The dealer with the analyst learns only the tables. The dealer with one site reads
everything. A site that lies, with the analyst, can tag fewer records of a table than twice the
codes of its columns: honest sites reduce codes to b bits, and drop every record whose tag is not 0.
Where records drop out, the first of a chain can drop others, down to one record, and the first and
the last together read every holder between them (`tests/privacy/test_tags.py`).
Leakage: the revealed tables to the analyst; n, the number of codes and which tables are asked, to
all; how many records are complete, to the holders. A record with a missing value is counted with
probability 2^-48.
Cost: 2 k n b / 8 bytes per table (b above 8 is even), whatever its cells; where records drop out,
6 n (4 k - 3) more. Rounds: k, and 2 more where records drop out, for all tables of a query.

References
----------
Laur, Willemson, Zhang (2011). Round-efficient oblivious database manipulation.
doi:10.1007/978-3-642-24861-0_18 (shuffling by parties in turn).
Chase, Ghosh, Poburinnaya (2020). Secret-shared shuffle. doi:10.1007/978-3-030-64840-4_12.
"""

from vertibayes_mpc.shuffled_tables.analyst import open_shuffled
from vertibayes_mpc.shuffled_tables.dealer import deal_shuffled
from vertibayes_mpc.shuffled_tables.plan import ShufflePlan
from vertibayes_mpc.shuffled_tables.site import count_shuffled

__all__ = ["ShufflePlan", "count_shuffled", "deal_shuffled", "open_shuffled"]

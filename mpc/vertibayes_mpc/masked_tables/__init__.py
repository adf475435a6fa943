"""Contingency tables over columns of several parties: mask once, count many.

Sites P, Q, R hold categorical columns of the same n records; a dealer, who holds no data, shares a
key with each of them. X is the 0/1 matrix of a column's states (except the first), A its mask. A
*term* is a product of columns, record by record: X_g (x) X_h. `plan` starts with an example.

    Commit    P -> sites       Xhat = X + A                             `vertibayes_mpc.commitments`
    Extend    s -> R           -A_s(L) (x) Zhat + D_s + A_s(T)             T = L (x) Z, Z at R
              dealer -> R      sum_{s != R} A_s(L) (x) A_R(Z) - sum_{s != R} D_s
              R -> sites       That = (Lhat - A_R(L)) (x) Z + all these + A_R(T)
    Table     R                (Lhat - A_R(L))^T Z + C_R
              s                -A_s(L)^T Zhat + C_s                        the other holders of L
              dealer -> R      C_R = sum_{s != R} A_s(L)^T A_R(Z) - sum_{s != R} C_s
    Share     s                the sum of its parts: its shares of the cells
    Open      s -> analyst     its shares + zero shares

A term's mask is the sum of its holders' A_s. A_s, D_s and C_s are streams under the key that s
shares with the dealer, each under a label that names the study, the query and the operands. Every
query has a new number, and every commitment new random ids: no stream is used twice. A term over
one site is multiplied there and sent like a commitment. A column of several holders (a hybrid
split) is the sum of their matrices, and so is its mask.

Security: honest-but-curious. Against the analyst and all sites except one, the messages of this
site are simulated from the revealed tables; against the dealer alone, everything is. The dealer and
one site together read every column.
Leakage: the revealed tables to the analyst; n, the number of states and which tables are asked, to
all.
Cost: a commitment, n x columns elements to each site, once; a term over several sites, n x columns
from the dealer, from each holder, and from R to each site that multiplies by it; a table, its
cells. Rounds: `Plan.rounds`, whatever the number of tables.
"""

from vertibayes_mpc.masked_tables.dealer import deal_tables
from vertibayes_mpc.masked_tables.plan import Group, Plan
from vertibayes_mpc.masked_tables.site import count_tables, open_tables, share_tables

__all__ = ["Group", "Plan", "count_tables", "deal_tables", "open_tables", "share_tables"]

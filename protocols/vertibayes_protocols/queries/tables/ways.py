"""The ways of counting that a study can name, each with its plan and costs.

    masked-tables     masked columns, sent once: by products and shuffles     masked
    scalar-product    n-party products of each cell's indicators              scalar_products
    paillier          encrypted columns from site to site, without a dealer   encrypted

`vertibayes_protocols.queries.tables.counting` is their interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vertibayes_protocols.queries.tables.counting import TableCosts, TablePlan, kept_costs
from vertibayes_protocols.queries.tables.encrypted import PaillierPlan
from vertibayes_protocols.queries.tables.masked import MaskedPlan
from vertibayes_protocols.queries.tables.scalar_products import ProductPlan
from vertibayes_protocols.settings import CountBy
from vertibayes_protocols.study import Study

WAYS: Final[Mapping[CountBy, type[TablePlan]]] = {
    "masked-tables": MaskedPlan,
    "scalar-product": ProductPlan,
    "paillier": PaillierPlan,
}


def costs_of(study: Study, records: int, missing: bool, *key_bits: int) -> TableCosts[Any]:
    """Return the costs of a study's tables by its way of counting, over some records.

    key_bits: `Joined.key_bits`, if the study was joined.
    """
    return kept_costs(WAYS[study.count_by].costs_type, study, records, missing, *key_bits)

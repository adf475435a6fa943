"""The mutants of `mutations.py`: what is changed, and the tests that fail then."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """A change of one file that breaks a security property.

    Parameters
    ----------
    name : str
        What the mutant does not do.
    file : str
        The file, from the root of the project.
    changes : tuple of (str, str)
        Texts that the file has once, and what replaces them.
    tests : tuple of str
        The tests that must fail: files, or `file::function`.
    """

    name: str
    file: str
    changes: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


def mutant(name: str, file: str, before: str, after: str, *tests: str) -> Mutant:
    """Return a mutant with one change."""
    return Mutant(name, file, ((before, after),), tests)


def skipped(name: str, file: str, condition: str, *tests: str) -> Mutant:
    """Return a mutant that never meets a condition, and so never refuses."""
    return mutant(name, file, f"if {condition}:", f"if ({condition}) and False:", *tests)


RING, RINGS = "mpc/vertibayes_mpc/ring.py", "tests/mpc/test_ring.py"
AGREED = "protocols/vertibayes_protocols/key_agreement.py"
SEAL, SEALS = "protocols/vertibayes_protocols/seal.py", "tests/protocols/test_seal.py"
VERSIONS = "tests/protocols/test_versions.py"
SECRETS = "secrets = both + mixed[sides[0][0]] + mixed[sides[1][0]] + static"
INFO = "*context, *(part for side in sides for part in side))"
BLANK = "header[:5] + bytes(3) + header[8:]"

OF_SEALS = (
    mutant("seal without ee", AGREED, SECRETS, SECRETS.replace("both + ", ""), SEALS),
    mutant("seal without es", AGREED, SECRETS, SECRETS.replace("mixed[sides[0][0]] + ", ""), SEALS),
    mutant("seal without se", AGREED, SECRETS, SECRETS.replace("mixed[sides[1][0]] + ", ""), SEALS),
    mutant("seal without ss", AGREED, SECRETS, SECRETS.replace(" + static", ""), SEALS),
    mutant(
        "seal: names not in info", AGREED, INFO, INFO.replace("in side))", "in side[1:]))"), SEALS
    ),
    mutant("seal: session not in info", AGREED, INFO, INFO.replace("*context, ", ""), SEALS),
    skipped("seal: replays are opened", SEAL, "header.counter < expected", SEALS),
    skipped("seal: missing packets are not noticed", SEAL, "header.counter > expected", SEALS),
    skipped("seal: a second hello changes the key", SEAL, "sender in self._keys", SEALS),
    mutant(
        "seal: keys are kept after the session",
        SEAL,
        "self._keys.clear()",
        "self._keys.keys()",
        SEALS,
    ),
    Mutant(
        "seal: the version is not authenticated",
        SEAL,
        (
            (
                "return header + _cipher(secret, header).encrypt(_NONCE, text, header)",
                f"return header + _cipher(secret, {BLANK}).encrypt(_NONCE, text, {BLANK})",
            ),
            (
                "header = bytes(view[: HEADER.size])",
                "header = bytes(view[:5]) + bytes(3) + bytes(view[8 : HEADER.size])",
            ),
        ),
        (VERSIONS,),
    ),
    mutant(
        "versions are not compared before a session",
        "protocols/vertibayes_protocols/transports/mailbox.py",
        "            compare_versions(self.identity, party, packet)\n",
        "",
        VERSIONS,
    ),
    Mutant(
        "a hello is read before the versions are compared",
        "protocols/vertibayes_protocols/transports/connection.py",
        (
            ("        compare_versions(self._seal.identity, peer.party, packet)\n", ""),
            (
                "        roster = control.decode_roster(text, peer.party, answers)\n",
                "        roster = control.decode_roster(text, peer.party, answers)\n"
                "        compare_versions(self._seal.identity, peer.party, packet)\n",
            ),
        ),
        (VERSIONS,),
    ),
)

OPENING = "protocols/vertibayes_protocols/queries/opening"
MEET, MEETS = f"{OPENING}/meet.py", "tests/protocols/test_meet.py"
CPACE, CPACES = "mpc/vertibayes_mpc/cpace.py", "tests/mpc/test_cpace.py"
CONFIRMING = "    confirming(tuple(first))\n"
CONFIRMED = """\
    outbox, same = {peer: codes[peer] for peer in first}, {}
    for peer in sorted(keys):  # those whose code comes first
        theirs = (yield from exchange(outbox, {peer: Expect(Confirmation)}))[peer].code
        same[peer] = hmac.compare_digest(theirs, _code(keys[peer], peer, party))
        outcome(peer, same[peer])
        outbox = {} if peer in first else {peer: codes[peer]}
"""

OF_MEET = (
    mutant(
        "comparisons are counted after the codes are sent",
        CPACE,
        CONFIRMING + CONFIRMED,
        CONFIRMED + CONFIRMING,
        CPACES,
        MEETS,
    ),
    mutant(
        "the secret of a comparison is a plain digest",
        MEET,
        "return hmac.new(key.secret, lists, hashlib.sha256).digest()",
        "return hashlib.sha256(lists).digest()",
        MEETS,
    ),
    mutant(
        "the secret of a comparison is the list's digest",
        MEET,
        "return hmac.new(key.secret, lists, hashlib.sha256).digest()",
        "return lists",
        MEETS,
    ),
    mutant(
        "CPace: the session is not in the point",
        CPACE,
        "zeros, names, session)).digest()",
        "zeros, names)).digest()",
        CPACES,
    ),
    mutant(
        "CPace: the names are not in the point",
        CPACE,
        "zeros, names, session)).digest()",
        "zeros, session)).digest()",
        CPACES,
    ),
    mutant(
        "CPace: codes are the same in both directions",
        CPACE,
        "prefixed(sender.encode(), receiver.encode()), hashlib.sha256",
        "prefixed(*sorted((sender.encode(), receiver.encode()))), hashlib.sha256",
        CPACES,
    ),
    mutant(
        "CPace: the key does not depend on the points",
        CPACE,
        'hashlib.sha512(shared + b"oc" + b"".join(messages))',
        "hashlib.sha512(shared)",
        CPACES,
    ),
    skipped(
        "comparisons are not limited",
        MEET,
        "count.total + open_ >= site.policy.most_failed_meets",
        MEETS,
    ),
    skipped("Meet takes another key than the pinned one", MEET, "key != known[name]", MEETS),
    skipped(
        "Meet takes another dealer than the pinned one", MEET, 'named not in ("", dealer)', MEETS
    ),
    skipped(
        "a site commits with sites that it has not met",
        f"{OPENING}/commit_checks.py",
        "strange and (site.data.ids is not None or site.ledger.head)",
        MEETS,
    ),
)

RESTARTS = "tests/privacy/test_labels_over_restarts.py"
TABLES, SHUFFLES = "tests/mpc/test_masked_tables.py", "tests/mpc/test_shuffled_tables.py"
VIEWS, SHUFFLED = "tests/privacy/test_every_view.py", "tests/privacy/test_every_shuffle_view.py"
DRAWS, LOOKUPS = "tests/mpc/test_draws.py", "tests/privacy/test_every_lookup_view.py"
CHOOSE = "protocols/vertibayes_protocols/queries/choices/choose.py"
CHOICES = "tests/protocols/test_choose.py"

OF_MASKS = (
    mutant(
        "masks of columns without the columns' ids",
        "mpc/vertibayes_mpc/commitments/columns.py",
        "commitments.label, commitments.operands[place].id, form.name",
        "commitments.study, form.name",
        f"{VIEWS}",
        RESTARTS,
    ),
    mutant(
        "the label of a study without the columns' ids",
        "mpc/vertibayes_mpc/commitments/operands.py",
        "parts += [op.id, op.width,",
        'parts += [b"", op.width,',
        "tests/protocols/test_commit.py",
        RESTARTS,
    ),
    mutant(
        "masks of a query without its number",
        "mpc/vertibayes_mpc/masked_tables/plan.py",
        "query = self.commitments.label, self.number,",
        "query = self.commitments.label, 0,",
        TABLES,
    ),
    mutant(
        "masks of shuffles without the query's number",
        "mpc/vertibayes_mpc/shuffled_tables/plan.py",
        "query = self.commitments.label, self.number,",
        "query = self.commitments.label, 0,",
        SHUFFLES,
    ),
    mutant(
        "masks of extensions without their columns",
        "mpc/vertibayes_mpc/masked_tables/plan.py",
        'label(purpose, self.query, np.array(term, "<u4").tobytes())',
        "label(purpose, self.query)",
        VIEWS,
    ),
    mutant(
        "one mask for a sign and for what is signed",
        "mpc/vertibayes_mpc/lookups/two_sites.py",
        '("cross", "sign", "signed")',
        '("cross", "sign", "sign")',
        DRAWS,
        LOOKUPS,
    ),
    mutant(
        "one mask for the parts of lookups",
        "mpc/vertibayes_mpc/lookups/plan.py",
        "self.part.batch, self.part.start, purpose",
        "self.part.batch, purpose",
        DRAWS,
        LOOKUPS,
    ),
    mutant(
        "one mask for the values of two choices",
        CHOOSE,
        'label("choose", self.joined.commitments.label, self.asked)',
        'label("choose", self.joined.commitments.label)',
        CHOICES,
    ),
    mutant(
        "labels do not name which sums are kept",
        CHOOSE,
        'label("asked", self.query, known.tobytes())',
        'label("asked", self.query)',
        CHOICES,
    ),
    Mutant(
        "kept shares of other records",
        CHOOSE,
        (
            ("joined.sums.get((self.rows, self.missing), {})", "joined.sums.get(0, {})"),
            ("held.setdefault((self.rows, self.missing), {})", "held.setdefault(0, {})"),
        ),
        (CHOICES,),
    ),
    mutant(
        "kept shares of another ring",
        "protocols/vertibayes_protocols/queries/choices/scored_tables.py",
        "frozenset(lookup.kept), precision)",
        'frozenset(lookup.kept), precision._replace(ring="any"))',
        CHOICES,
    ),
    mutant(
        "more shares are kept than a session may keep",
        CHOOSE,
        "+ len(keys) <= most:",
        "+ len(keys) <= 10 * most:",
        CHOICES,
    ),
    mutant(
        "one mask for the parts of unit vectors",
        "mpc/vertibayes_mpc/unit_vectors.py",
        'self.label("units", index, part.start)',
        'self.label("units", index)',
        DRAWS,
    ),
    mutant(
        "one mask for the rows of all lists",
        "mpc/vertibayes_mpc/alignment/chain.py",
        'plan.name("row mask", owner, at)',
        'plan.name("row mask", at)',
        DRAWS,
    ),
    mutant(
        "one mask for the elements of a row",
        "mpc/vertibayes_mpc/alignment/chain.py",
        'plan.name("row mask", owner, at)',
        'plan.name("row mask", owner)',
        DRAWS,
    ),
    mutant(
        "an owner's order that the dealer knows",
        "mpc/vertibayes_mpc/alignment/chain.py",
        "self._order(self.private)",
        "self._order(self.site.dealer_key or self.private)",
        DRAWS,
    ),
    mutant(
        "a scalar that everybody knows",
        "mpc/vertibayes_mpc/alignment/chain.py",
        "self.scalar = site.randomness.bytes(KEY_BYTES)",
        "self.scalar = bytes([8] * KEY_BYTES)",
        "tests/mpc/test_alignment.py",
    ),
    mutant(
        "digests of the last block of columns alone",
        "mpc/vertibayes_mpc/commitments/commit.py",
        "digests[peer].update(packed.data)",
        "digests[peer] = hashlib.sha256(packed.data)",
        TABLES,
    ),
    mutant(
        "tables without zero shares",
        "mpc/vertibayes_mpc/masked_tables/site.py",
        "send_share(shares + zeros,",
        "send_share(shares,",
        f"{VIEWS}::test_shares_of_a_table_do_not_depend_on_the_order_of_the_records",
    ),
    mutant(
        "scalar products without zero shares",
        "protocols/vertibayes_protocols/queries/tables/scalar_products.py",
        "share + zero_share(own.party, peers, self.ring, product.label, part.cells)",
        "share",
        "tests/privacy/test_attacks_on_counting.py::test_dealer_and_analyst_have_no_equation",
    ),
    mutant(
        "scalar products of all queries under the same names",
        "protocols/vertibayes_protocols/queries/tables/scalar_products.py",
        "[commitments.label, self.number, self.selection.name]",
        "[commitments.label, self.selection.name]",
        "tests/privacy/test_attacks_on_counting.py",
    ),
    mutant(
        "a third site passes on powers without fresh randomness",
        "mpc/vertibayes_mpc/paillier/counting.py",
        "public.rerandomize(moved, self.randomness) if place > 1 else moved",
        "moved",
        "tests/privacy/test_paillier_attacks.py",
    ),
    mutant(
        "an owner takes randomizers of all orders for a third site",
        "mpc/vertibayes_mpc/paillier/counting.py",
        "self.key.encrypt_odd if passed_on else self.key.encrypt",
        "self.key.encrypt",
        "tests/privacy/test_paillier_views.py",
    ),
    mutant(
        "a column is passed on twice",
        "mpc/vertibayes_mpc/paillier/plan.py",
        "(columns[0], ranges[0]) if len(columns) == 2 else chain",
        "(columns[0], ranges[0])",
        "tests/privacy/test_paillier_views.py",
    ),
    mutant(
        "an answer by paillier without a mask",
        "mpc/vertibayes_mpc/paillier/counting.py",
        "uniform_below(public.modulus, self.randomness)",
        "uniform_below(1, self.randomness)",
        "tests/privacy/test_paillier_views.py",
    ),
    mutant(
        "sites do not compare the keys that they received",
        "protocols/vertibayes_protocols/queries/opening/joining_by_keys.py",
        "compare(site.party, KEYS, digests, study.sites, study.sites)",
        "compare(site.party, KEYS, dict.fromkeys(digests, bytes(32)), study.sites, study.sites)",
        "tests/protocols/test_count_by_paillier.py",
    ),
    mutant(
        "zero shares that are zero",
        "mpc/vertibayes_mpc/sharing.py",
        "add(share, key.elements(",
        "add(share, 0 * key.elements(",
        "tests/mpc/test_sharing.py",
    ),
    skipped(
        "packing: padding may hide a message",
        RING,
        "elements[count:].any() or above.any()",
        RINGS,
    ),
    skipped("packing: any length", RING, "len(packed) != self.packed_size(count)", RINGS),
    mutant(
        "packing: elements run into each other",
        RING,
        "above &= high\n",
        "above &= high | low\n",
        RINGS,
    ),
    mutant("products of counts are rounded", RING, "EXACT_BITS = 53", "EXACT_BITS = 56", RINGS),
    mutant("products of indicators are rounded", RING, "BITS = 24, 7", "BITS = 26, 7", RINGS),
    mutant("a ring too narrow for a count", RING, "records < 2**bits", "records <= 2**bits", RINGS),
    skipped(
        "a number of a query is used twice",
        "mpc/vertibayes_mpc/commitments/commit.py",
        "number <= last",
        TABLES,
    ),
    skipped(
        "a label of masks is used twice",
        "mpc/vertibayes_mpc/commitments/commit.py",
        "label in self._used",
        "tests/mpc/test_argmax.py",
    ),
    skipped(
        "a site takes a number of a query twice",
        "protocols/vertibayes_protocols/record_checks.py",
        "value <= last",
        "tests/protocols/test_tables.py",
    ),
    skipped(
        "corrections of another query are used",
        "mpc/vertibayes_mpc/labelled.py",
        "message.label != label",
        "tests/privacy/test_a_dishonest_analyst.py",
    ),
)

POLICY, POLICIES = "protocols/vertibayes_protocols/policy.py", "tests/protocols/test_policy.py"
RULES = "tests/protocols/test_rules_of_the_policy.py"
CHECKS = "protocols/vertibayes_protocols/record_checks.py"
CHANGES = "protocols/vertibayes_protocols/storage/changes.py"
MEMORY = "protocols/vertibayes_protocols/storage/memory.py"
RUN_RECORD = "protocols/vertibayes_protocols/storage/run_record.py"
CHANGED = "tests/protocols/test_changes.py"
OVER_YEARS = "tests/privacy/test_attacks_over_years.py"

BEGIN = "protocols/vertibayes_protocols/queries/opening/begin.py"
HEADS = f"{OPENING}/heads.py"
CHAIN = "protocols/vertibayes_protocols/storage/chain.py"
LEDGER = "protocols/vertibayes_protocols/storage/ledger_file.py"
VERIFY = "tests/e2e/test_verify.py"
LEDGERS = "tests/protocols/test_ledger_file.py"
OLDER = "tests/privacy/test_older_memories.py"
AROUND = "tests/privacy/test_heads_not_avoided.py"

OF_FLOORS = (
    mutant(
        "floors hold at approve alone", BEGIN, "        _check_floors(site, contract)\n", "", RULES
    ),
    skipped("a smaller fewest", POLICY, "rule.smallest < (least := self.least_fewest)", RULES),
    skipped("other rules", POLICY, "rule.kind not in self.rules", RULES),
    skipped("more runs of a study", POLICY, "runs > (most := self.most_runs)", RULES),
    mutant("an epsilon of one run", POLICY, "epsilon * runs,", "epsilon,", RULES),
    skipped(
        "noise beside counts",
        POLICY,
        "self.noise_alone and (plain if is_noisy else spent.eps)",
        RULES,
    ),
    skipped(
        "a run after the last day",
        "protocols/vertibayes_protocols/queries/approved_run.py",
        "self.approved.is_over",
        "tests/protocols/test_approved_studies.py",
    ),
    mutant(
        "an older memory goes on",
        "protocols/vertibayes_protocols/parties.py",
        "    if role.went_back:\n",
        "    if role.went_back and False:\n",
        OLDER,
    ),
    mutant(
        "a site that went back says nothing",
        HEADS,
        "together.check_own(peer, own, is_known=is_known)",
        "together.check_own(peer, own, is_known=True)",
        OLDER,
    ),
    mutant(
        "its peers go on", HEADS, "is_known=answer.is_known and is_its_key", "is_known=True", OLDER
    ),
    mutant(
        "a new key begins again", HEADS, "answer.is_known and is_its_key", "answer.is_known", AROUND
    ),
    mutant(
        "a session that took long brings an older head",
        "protocols/vertibayes_protocols/storage/runs_together.py",
        "newest.head and self.last(peer) == before",
        "newest.head",
        AROUND,
    ),
    mutant(
        "a peer forgets by which head it would notice",
        HEADS,
        "if is_known and not reasons:",
        "if True:",
        OLDER,
    ),
    mutant("heads without the line before", CHAIN, "self.head + line", "line", LEDGERS),
    skipped("a ledger older than the memory", LEDGER, "lines > chain.lines", VERIFY),
    skipped("a memory older than the ledger", LEDGER, "chain.writes > memory.writes", VERIFY),
)

OF_POLICIES = (
    skipped("tables over few records", POLICY, "chosen < self.fewest_records", POLICIES),
    skipped(
        "tables that leave out few records",
        POLICY,
        "0 < records - chosen < self.fewest_records",
        POLICIES,
    ),
    skipped(
        "tables of more variables", POLICY, "variables > (most := self.most_variables)", POLICIES
    ),
    skipped("tables of more cells", POLICY, "total > self.most_cells", POLICIES),
    skipped("more released tables", POLICY, "total > most", CHANGED),
    skipped(
        "more bits of winners",
        POLICY,
        "chosen + bits > (most := self.most_choice_bits)",
        f"{RULES}::test_winners_have_no_more_bits_than_the_policy_allows",
    ),
    skipped(
        "hidden variables are shown",
        POLICY,
        "hidden := [variable for variable in variables if not self.shows(variable)]",
        POLICIES,
    ),
    skipped("sums without noise", POLICY, "not self.exact_sums", POLICIES),
    mutant(
        "releases over the budget",
        POLICY,
        "if spent.permits(cost, limit, most):",
        "if True:",
        POLICIES,
    ),
    mutant(
        "tables are not compared with the policy",
        "protocols/vertibayes_protocols/engine.py",
        "    policy.check_tables(effects.tables)\n",
        "",
        "tests/protocols/test_tables.py",
    ),
    skipped(
        "record sets that single out a few",
        CHECKS,
        "site.memory.sets.smallest_atom(records) < site.policy.fewest_records",
        "tests/protocols/test_tables.py",
    ),
    skipped(
        "more record sets",
        CHECKS,
        "len(site.memory.sets) >= site.policy.most_row_sets",
        "tests/protocols/test_tables.py",
    ),
    mutant(
        "record sets are not remembered",
        CHECKS,
        "        site.memory.answer(site.data, records)\n",
        "",
        "tests/protocols/test_tables.py",
    ),
    skipped("few changed values", CHANGES, "changed := dict(chain(*few))", CHANGED),
    mutant(
        "a single change does not count",
        CHANGES,
        "if count < fewest}",
        "if 1 < count < fewest}",
        CHANGED,
    ),
    mutant(
        "new pseudonyms hide changes",
        CHANGES,
        "exchanged = _exchanged(*rows)",
        "exchanged = 0",
        CHANGED,
    ),
    skipped(
        "counts of changed data",
        CHANGES,
        "difference.is_any and not earlier.has_noise",
        OVER_YEARS,
    ),
    mutant("two rules that hide", CHANGES, "self.changed or self.rule", "self.changed", OVER_YEARS),
    mutant(
        "columns of the study alone are compared",
        "protocols/vertibayes_protocols/roles.py",
        "self.memory.snapshot(data, data.variables, digests)",
        "self.memory.snapshot(data, self.own(study), digests)",
        OVER_YEARS,
    ),
    mutant(
        "data are approved beside any study",
        CHANGES,
        "if approved and earlier.digest(self._tag) in approved:",
        "if approved:",
        OVER_YEARS,
    ),
    mutant(
        "bins are united",
        MEMORY,
        "bins_of(earlier) or bins_of(variable.states)",
        "False",
        OVER_YEARS,
    ),
    mutant(
        "values are not remembered",
        CHECKS,
        "        site.memory.keep_values(values, variables)\n",
        "",
        CHANGED,
    ),
)

RUN, APPROVED = (
    "protocols/vertibayes_protocols/queries/approved_run.py",
    "tests/protocols/test_approved_studies.py",
)
BEGIN = f"{OPENING}/begin.py"
CANONICAL, CONTRACTS = "return canonical_json(self.as_json())", "tests/protocols/test_contract.py"


def without(field: str) -> Mutant:
    """Return the mutant whose digest of a contract does not depend on a field."""
    content = f'return canonical_json({{**self.as_json(), "{field}": 0}})'
    name = f"the digest of a contract without its {field}"
    return mutant(name, "protocols/vertibayes_protocols/contract.py", CANONICAL, content, CONTRACTS)


APPROVALS = "protocols/vertibayes_protocols/deployment/approvals.py"
DECISIONS = "tests/e2e/test_decisions.py"

OF_APPROVALS = (
    skipped(
        "no second person",
        APPROVALS,
        "missing := missing_consent(approval, site, second)",
        DECISIONS,
    ),
    mutant(
        "a second person's consent to another site",
        APPROVALS,
        '"site": site}',
        '"site": ""}',
        DECISIONS,
    ),
    mutant(
        "a consent to any words",
        APPROVALS,
        "content = _content(approval._replace(second=None))",
        "content: dict[str, Any] = {}",
        DECISIONS,
    ),
    mutant(
        "free queries are answered everywhere",
        "protocols/vertibayes_protocols/parties.py",
        'elif not (role.policy.free_tables or query.phase == "begin"):',
        "elif False:",
        APPROVED,
    ),
    mutant(
        "the queries of a run are not checked",
        "protocols/vertibayes_protocols/parties.py",
        "        role.run.check(query)\n",
        "        pass\n",
        APPROVED,
    ),
    skipped("another step than the next one", RUN, "query.step != step", APPROVED),
    mutant(
        "a withdrawn approval is not noticed", RUN, "        self._check_approval()\n", "", APPROVED
    ),
    skipped(
        "another order of the variables",
        f"{OPENING}/commit.py",
        "tuple(study.variables) != contract.variables",
        APPROVED,
    ),
    skipped(
        "a contract with other keys",
        BEGIN,
        "wrong := _wrong_party(site, contract)",
        APPROVED,
    ),
    skipped("more runs than the contract's", BEGIN, "used >= contract.runs", APPROVED),
    mutant(
        "released runs are not counted",
        RUN_RECORD,
        "used=1)\n        if contract",
        "used=0)\n        if contract",
        APPROVED,
    ),
    mutant(
        "begun runs are not counted",
        RUN_RECORD,
        "begun=1)\n        self._last.pop",
        "begun=0)\n        self._last.pop",
        APPROVED,
    ),
    *map(
        without, ("sites", "dealer", "analyst", "variables", "options", "rule", "queries", "runs")
    ),
)

NOISE = "tests/mpc/test_noise.py"
BOX = "protocols/vertibayes_protocols/transports/mailbox.py"
MAIL = "tests/protocols/test_attacks_on_mail.py"
PIECES = "protocols/vertibayes_protocols/transports/pieces.py"
PIECE = "tests/protocols/test_pieces.py"

OF_NOISE_AND_MAIL = (
    mutant(
        "Gaussian noise of a smaller scale",
        "mpc/vertibayes_mpc/noise/copies.py",
        "math.sqrt(2 * self.rho) * ABOVE",
        "math.sqrt(2.1 * self.rho) * ABOVE",
        NOISE,
    ),
    mutant(
        "geometric noise of a smaller scale",
        "mpc/vertibayes_mpc/noise/copies.py",
        "scale = float(1 / rate)",
        "scale = float(1 / rate) / 2\n    return scale",
        NOISE,
    ),
    mutant(
        "diluted noise of fewer copies",
        "mpc/vertibayes_mpc/noise/copies.py",
        "(self.gamma * self.n) * SLACK, 1.0)",
        "self.n * SLACK, 1.0)",
        NOISE,
    ),
    skipped(
        "pieces without a bound",
        PIECES,
        "self.queued > self.most or count * PIECE > self.most + PIECE",
        PIECE,
    ),
    skipped(
        "processes without a bound",
        PIECES,
        "key not in self._streams and len(self._streams) >= MOST_STREAMS",
        PIECE,
    ),
    skipped("hellos of any size are kept", BOX, "len(packet) > HELLO_BYTES", MAIL),
    skipped("any number of hellos is kept", BOX, "len(kept) == MOST_EARLY", MAIL),
    mutant(
        "hellos are kept that do not open",
        BOX,
        "            self.identity.open_statically(party, packet)\n",
        "",
        MAIL,
    ),
    skipped(
        "a hello begins a session again",
        BOX,
        "(begun := self._begun.get(header.session)) is not None",
        "tests/protocols/test_channel_attacks.py",
        "tests/protocols/test_channel.py",
    ),
    skipped(
        "messages wait without a bound",
        "protocols/vertibayes_protocols/transports/connection.py",
        "peer.waiting > MOST_WAITING",
        "tests/protocols/test_connection.py",
    ),
    skipped(
        "messages of any size are read",
        "protocols/vertibayes_protocols/wire/decoding.py",
        "self.cells < 0",
        "tests/protocols/test_wire.py",
    ),
)

MUTANTS = (
    *OF_SEALS,
    *OF_MEET,
    *OF_MASKS,
    *OF_POLICIES,
    *OF_FLOORS,
    *OF_APPROVALS,
    *OF_NOISE_AND_MAIL,
)

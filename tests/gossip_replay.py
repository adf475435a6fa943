"""What gossip between machines must have computed: the same iterations, all nodes in arrays."""

import numpy as np

from vertibayes_protocols.gossip import GossipNodes


def replay(updates, sent):
    """Return the estimates of the nodes that sent in the last iteration.

    `sent` says, for each iteration, who sent to whom. Messages to a node arrive in the order of
    their senders' names; a node that no longer sends no longer receives.
    """
    names = sorted(updates)
    place = {name: row for row, name in enumerate(names)}
    nodes = GossipNodes(np.array([updates[name] for name in names]))
    estimates = nodes.estimate()
    for messages in sent:
        estimates = nodes.estimate()
        senders = [name for name in sorted(messages) if messages[name] in messages]
        rows = np.array([place[name] for name in senders], np.intp)
        receivers = np.array([place[messages[name]] for name in senders], np.intp)
        nodes.receive(receivers, estimates.rows(rows))
    last = sent[-1] if sent else updates
    return {name: estimates.values[place[name]] for name in names if name in last}

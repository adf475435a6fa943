"""Transports: they move bytes, and know no protocol.

local          runs all parties in one process
network        between machines: sessions (channel, connection, control, serving) over a mailbox,
               which seals packets and gives them to a link (outbox, counted)
relay_link     the link to the relay; line: how it is opened, route: where and by which proxy;
               carried: the link through a task of another platform
relay          passes packets on; entrance: who may connect; server_socket: its connections
proof, tls     who both ends are
frames, pieces what a link sends; loop: the thread in which it does
"""

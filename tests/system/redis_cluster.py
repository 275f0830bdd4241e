"""Makes a Redis Cluster, lists its keys, and moves its slots."""

import subprocess

from harness import Redis, eventually


class Node(Redis):
    def __init__(self, *options, **more):
        super().__init__("--cluster-enabled", "yes", "--cluster-node-timeout", "800", "--cluster-require-full-coverage", "no",
                         "--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0", *options, **more)

    @property
    def name(self):
        return self.command("CLUSTER", "MYID").decode()

    def ok(self, *words):
        answer = self.command(*words)
        assert answer in (b"OK", b"NOKEY"), (words, answer)


def form(nodes, replicas=0):
    """Joins the nodes to one Redis Cluster."""
    addresses = [f"127.0.0.1:{node.port}" for node in nodes]
    subprocess.run(["redis-cli", "--cluster", "create", *addresses, "--cluster-replicas", str(replicas), "--cluster-yes"], check=True,
                   stdout=subprocess.DEVNULL)
    for node in nodes:
        eventually(lambda node=node: b"cluster_state:ok" in node.command("CLUSTER", "INFO"), "the cluster is ok")


def state(nodes, more="", timeout="100ms"):
    """Returns the [state] settings for these nodes."""
    nodes = ", ".join(f'"127.0.0.1:{node.port}"' for node in nodes)
    return (f'key_secret = "test"\nredis = {{ url = "redis://ignored", topology = "cluster", nodes = [{nodes}], '
            f'timeout = "{timeout}"{more} }}')


def slots_of(node):
    """Returns the slots that a node reports as its own: a list of ranges (first, last)."""
    own = next(line for line in node.command("CLUSTER", "NODES").decode().splitlines() if "myself" in line)
    ranges = [part.split("-") for part in own.split()[8:] if not part.startswith("[")]
    return [(int(part[0]), int(part[-1])) for part in ranges]


def keys_of(*nodes):
    """Returns the keys of clients that are stored on these nodes."""
    return [key.decode() for node in nodes for key in node.command("KEYS", "weir:*") if b":probe:" not in key]


def move_slot(slot, source, target, masters, meanwhile=lambda: None):
    """Moves a slot as a resharding does. Calls `meanwhile` while the slot moves, and again when half of the slot's keys have
    moved."""
    target.ok("CLUSTER", "SETSLOT", str(slot), "IMPORTING", source.name)
    source.ok("CLUSTER", "SETSLOT", str(slot), "MIGRATING", target.name)
    meanwhile()
    keys = [key.decode() for key in source.command("CLUSTER", "GETKEYSINSLOT", str(slot), "100")]
    assert keys, "a slot with a key"
    source.ok("MIGRATE", "127.0.0.1", str(target.port), "", "0", "1000", "KEYS", keys[0])
    meanwhile()
    if keys[1:]:
        source.ok("MIGRATE", "127.0.0.1", str(target.port), "", "0", "1000", "KEYS", *keys[1:])
    meanwhile()
    for node in (target, source, *masters):
        node.ok("CLUSTER", "SETSLOT", str(slot), "NODE", target.name)

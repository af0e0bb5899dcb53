"""Two machines of a Ray cluster, played by two nodes on this one, until standard input is closed.

A process of its own, so that what Ray leaves in a process stays out of the tests'. It prints the
address and the process that is the second machine.
"""

import json
import socket
import sys

from ray.cluster_utils import Cluster

AGENTS = (  # Ray gives up on a machine whose agents take 15 s to name a port; these need not
    "metrics_agent_port",
    "dashboard_agent_listen_port",
    "runtime_env_agent_port",
    "metrics_export_port",
)


def machine():
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in AGENTS]
    ports = {name: s.getsockname()[1] for name, s in zip(AGENTS, sockets, strict=True)}
    for one in sockets:
        one.close()
    return ports | {
        "num_cpus": 1,
        "num_gpus": 0,
        "object_store_memory": 80 * 2**20,
        "include_dashboard": False,
        "include_log_monitor": False,
        "no_monitor": True,
    }


if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args=machine())
    second = cluster.add_node(**machine())
    (raylet,) = second.all_processes["raylet"]
    print(json.dumps({"address": cluster.address, "second": raylet.process.pid}), flush=True)
    sys.stdin.read()
    cluster.shutdown()

"""Start a Ray cluster of two nodes on this machine, until standard input is closed.

This runs in a separate process, so that Ray leaves nothing in the tests' process. It
prints the cluster's address and the process of the second node.
"""

import inspect
import json
import socket
import sys
from pathlib import Path

from ray._private import services
from ray.cluster_utils import Cluster

LISTENS = "dashboard_agent_listen_port"
AGENTS = (  # ports are given, because Ray waits only 15 s for agents to choose one
    "metrics_agent_port",
    LISTENS,
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


def start_with_port(*arguments, start=services.start_raylet, **options):
    """Write the file that names the agent's port, which a busy agent would write too late."""
    values = inspect.signature(start).bind(*arguments, **options).arguments
    file = Path(values["session_dir"]) / f"{LISTENS}_{values['node_id']}"
    file.write_text(str(values[LISTENS]))
    return start(*arguments, **options)


if __name__ == "__main__":
    services.start_raylet = start_with_port
    cluster = Cluster(initialize_head=True, head_node_args=machine())
    second = cluster.add_node(**machine())
    (raylet,) = second.all_processes["raylet"]
    started = {"address": cluster.address, "second": raylet.process.pid}
    print(json.dumps(started), flush=True)
    sys.stdin.read()
    cluster.shutdown()

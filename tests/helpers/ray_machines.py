"""Two machines of a Ray cluster, played by two nodes on this one, until standard input is closed.

A process of its own, so that what Ray leaves in a process stays out of the tests'. It
prints the address and the process that is the second machine.
"""

import inspect
import json
import socket
import sys
from pathlib import Path

from ray._private import services
from ray.cluster_utils import Cluster

LISTENS = "dashboard_agent_listen_port"
AGENTS = (  # Ray gives up on a machine whose agents take 15 s to name a port; these need not
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
    """Name the port that Ray does not pass on before its agent does, however busy the machine."""
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

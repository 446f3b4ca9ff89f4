"""A program in place of the Python of a worker: has it forked by `preparing`, with its own streams, and waits for it.

It imports little, and no module of this checkout: `prepared_worker.py PLACE`, with the path of a socket.
"""

import json
import os
import signal
import socket
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the worker gets it, too
    request = {"folder": os.getcwd(), "variables": dict(os.environ), "group": os.getpgid(0)}  # noqa: PTH109
    content = json.dumps({**request, "session": False, "waits": False}).encode()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    socket.send_fds(connection, [len(content).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(content)
    with connection.makefile("rb") as reply:
        reply.readline()  # its number
        status = json.loads(reply.readline() or '{"status": 1}')["status"]
    sys.exit(status if status >= 0 else 128 - status)

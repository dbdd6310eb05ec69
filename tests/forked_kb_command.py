"""`kb` for a shell: asks the process of tests/forked_kb.py to run the command with the pipes of this program.

It imports little, because it is started for each command.
"""

import json
import os
import socket
import sys

LENGTH = 8

with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    wanted = {"arguments": sys.argv[2:], "environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109
    request = json.dumps(wanted).encode()
    socket.send_fds(connection, [len(request).to_bytes(LENGTH, "big")], [0, 1, 2])
    connection.sendall(request)
    for end in (0, 1, 2):
        os.close(end)
    with connection.makefile("rb") as answers:
        _process, code = answers.read(LENGTH), int.from_bytes(answers.read(LENGTH), "big", signed=True)
os._exit(code if code >= 0 else 128 - code)

"""What an agent waits for: `kb mcp` from its start to the answer to `initialize`, against an interpreter that only
imports the SDK.

    python benchmarks/mcp_start.py [--runs 20]

On a database of the sample notes, the installed console script, runs interleaved.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import measuring

BAR = 1.5
SDK = "python -c 'import mcp'"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=20)
    chosen = options.parse_args()
    with measuring.work_folder() as work:
        database = work / "kb.sqlite"
        notes = measuring.REPOSITORY / "samples" / "notes"
        measuring.run([measuring.kb(), "--db", str(database), "ingest", str(notes), "--no-embed", "--quiet"])
        report(database, chosen.runs)


def report(database: Path, runs: int) -> None:
    contestants = {
        SDK: partial(measuring.run, [sys.executable, "-c", "import mcp"]),
        "kb mcp, until initialize is answered": partial(answered, database),
    }
    for contestant in contestants.values():
        contestant()  # compiles what has to be compiled
    costs = measuring.interleaved(runs, contestants)
    rows = []
    for name, taken in costs.items():
        wall, cpu = [cost.wall for cost in taken], [cost.cpu for cost in taken]
        sdk_wall, sdk_cpu = [cost.wall for cost in costs[SDK]], [cost.cpu for cost in costs[SDK]]
        times = measuring.ratio(cpu, sdk_cpu)
        rows.append(
            [
                name,
                f"{1000 * measuring.percentile(wall, 0.5):.0f}",
                f"{1000 * measuring.percentile(cpu, 0.5):.0f}",
                f"{measuring.ratio(wall, sdk_wall):.2f}×",
                f"{times:.2f}×",
                "" if name == SDK else measuring.verdict(times, BAR),
            ]
        )
    measuring.table(["p50", "wall ms", "CPU ms", "wall ratio", "CPU ratio", f"bar {BAR:g}×"], rows)


def answered(database: Path) -> measuring.Cost:
    """Wall time until the answer is there; CPU time of the whole process, whose end comes right after it."""
    started = time.perf_counter()
    arguments = [measuring.kb(), "--db", str(database), "mcp"]
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=measuring.environment())
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    wall = time.perf_counter() - started
    if "serverInfo" not in answer["result"]:
        raise SystemExit(f"kb mcp answered: {answer}")
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        raise SystemExit(f"kb mcp ended with {process.returncode}")
    return measuring.Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


if __name__ == "__main__":
    main()

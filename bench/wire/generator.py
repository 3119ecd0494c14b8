"""The load generator for machines without wrk: `python -m bench.wire.generator SCRIPT PORT SECONDS`.

Raw sockets under asyncio, one request in flight on each connection, replies read by their
Content-Length or chunks. It runs in a process of its own and prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.wire.client import HOST
from bench.wire.load import CONNECTIONS, TIMEOUT_SECONDS, Sample, line_from, messages
from bench.wire.workload import Operation


async def read_reply(reader: asyncio.StreamReader) -> int:
    """Read one reply to its end and return its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head.split(b" ", 2)[1])
    if b"\r\ntransfer-encoding: chunked" in head:
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            await reader.readexactly(size + 2)
        await reader.readuntil(b"\r\n")
        return status
    place = head.index(b"\r\ncontent-length:") + len(b"\r\ncontent-length:")
    await reader.readexactly(int(head[place : head.index(b"\r\n", place)]))
    return status


async def client(turns: Iterator[bytes], port: int, until: float, waits: list[float]) -> int:
    """Send until the time is over, noting the seconds of each answer; return the errors."""
    errors = 0
    reader, writer = await asyncio.open_connection(HOST, port)
    while time.perf_counter() < until:
        start = time.perf_counter()
        try:
            writer.write(next(turns))
            status = await asyncio.wait_for(read_reply(reader), TIMEOUT_SECONDS)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            errors += 1
            writer.close()
            await asyncio.sleep(0.05)
            reader, writer = await asyncio.open_connection(HOST, port)
            continue
        errors += status != 200
        waits.append(time.perf_counter() - start)
    writer.close()
    return errors


async def play(operation: Operation, port: int, seconds: float) -> Sample:
    """Play an operation on a server and return the figures."""
    turns = itertools.cycle(messages(operation, f"{HOST}:{port}"))
    waits: list[float] = []
    start = time.perf_counter()
    clients = [client(turns, port, start + seconds, waits) for _ in range(CONNECTIONS)]
    errors = sum(await asyncio.gather(*clients))
    taken = time.perf_counter() - start
    waits.sort()
    count = len(waits)
    return Sample(
        requests=count,
        seconds=taken,
        errors=errors,
        p50_ms=waits[count // 2] * 1e3 if waits else 0.0,
        p99_ms=waits[min(count - 1, count * 99 // 100)] * 1e3 if waits else 0.0,
        worst_ms=waits[-1] * 1e3 if waits else 0.0,
    )


def main() -> None:
    """Play the script that is named, and print the figures as the last line."""
    script, port, seconds = sys.argv[1:]
    stored = json.loads(Path(script).read_text(encoding="utf-8"))
    operation = Operation(
        title=stored["title"], targets=tuple(stored["targets"]), bodies=tuple(stored["bodies"])
    )
    print(line_from(asyncio.run(play(operation, int(port), float(seconds)))))


if __name__ == "__main__":
    main()

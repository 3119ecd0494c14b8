"""A worker's connection to the writer: health checks."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from solotable.server.workers.forwarder import WriterConnection
from solotable.server.workers.frames import FrameReader, encode_reply
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")


def test_a_writer_gets_one_check_however_many_clients_ask(tmp_path: Path) -> None:
    async def play() -> None:
        asked: asyncio.Queue[tuple[int, asyncio.StreamWriter]] = asyncio.Queue()
        closed = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            frames = FrameReader()
            while data := await reader.read(4096):
                for number, _, _ in frames.feed(data):
                    await asked.put((number, writer))
            writer.close()
            await writer.wait_closed()
            closed.set()

        path = str(tmp_path / "writer")
        server = await asyncio.start_unix_server(serve, path)
        forwarder = WriterConnection(path)
        await forwarder.connect()
        for _ in range(2):
            answers = [asyncio.get_running_loop().create_future() for _ in range(3)]
            for answer in answers:
                forwarder.check(answer.set_result)
            number, writer = await asyncio.wait_for(asked.get(), HANG_SECONDS)
            writer.write(encode_reply(number, 200, []))
            assert await asyncio.wait_for(asyncio.gather(*answers), HANG_SECONDS) == [True] * 3
            assert asked.empty()
        forwarder.close()
        await asyncio.wait_for(closed.wait(), HANG_SECONDS)
        server.close()

    asyncio.run(play())

"""A WebSocket server and client that use the library python3-websockets. `serve` prints its port and echoes messages. `talk URL
CA` exchanges messages of many sizes, a ping and the closing handshake. Runs with Debian's Python."""

import asyncio
import ssl
import sys

import websockets


async def echo(socket):
    async for message in socket:
        await socket.send(message)


async def serve():
    async with websockets.serve(echo, "127.0.0.1", 0, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


async def talk(url, authority):
    context = ssl.create_default_context(cafile=authority) if authority else None
    async with websockets.connect(url, ssl=context, max_size=None) as socket:
        for message in ("", "text", b"\0" * 125, "x" * 126, b"y" * 65536, b"z" * (4 << 20)):
            await socket.send(message)
            assert await socket.recv() == message, "another message came back"
        await socket.send(["in ", "several ", "frames"])
        assert await socket.recv() == "in several frames"
        await asyncio.wait_for(await socket.ping(), 10)
    assert socket.close_code == 1000, socket.close_code


asyncio.run(serve() if sys.argv[1] == "serve" else talk(*sys.argv[2:4]))

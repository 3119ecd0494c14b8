"""Pictures for the demo: drawn in code, so that a report has photos without a file from elsewhere."""

from __future__ import annotations

import struct
import zlib

WIDTH, HEIGHT = 480, 320
_SKY, _GROUND = (206, 219, 230), (122, 132, 104)


def draw_house(number: int) -> bytes:
    """Return a PNG of a house; its colours depend on the number."""
    wall = (150 + 17 * number % 70, 120 + 11 * number % 50, 95 + 7 * number % 60)
    roof = (95 + 29 * number % 60, 60 + 13 * number % 40, 55 + 5 * number % 40)
    rows = bytearray()
    for y in range(HEIGHT):
        rows.append(0)  # the row has no filter
        for x in range(WIDTH):
            rows += bytes(_colour(x, y, wall, roof))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _colour(x: int, y: int, wall: tuple[int, int, int], roof: tuple[int, int, int]) -> tuple[int, int, int]:
    left, right, eaves, ground = 110, 370, 150, 270
    if y >= ground:
        return _GROUND
    if left <= x <= right and y >= eaves:
        is_window = (x - left) % 90 in range(28, 62) and (y - eaves) % 60 in range(18, 48)
        # A course of bricks every eight pixels.
        return (70, 84, 96) if is_window else wall if y % 8 else (wall[0] - 18, wall[1] - 18, wall[2] - 18)
    # The roof is a triangle above the walls, with an overhang.
    half = (y - 60) * 160 // (eaves - 60)
    if 60 <= y < eaves and abs(x - 240) <= half:
        return roof if (x + y // 6 * 7) % 14 else (roof[0] - 20, roof[1] - 20, roof[2] - 20)
    return _SKY


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + checksum

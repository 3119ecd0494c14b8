"""Drive `limits`, or one token bucket in Lua: `python -m bench.systems.limiter_redis URL sync [lua]`.

It runs in the peer's own environment, on Redis or, for `sqlite://`, in memory. `limits` counts in fixed
windows, its cheapest strategy, with one hit for each limit. The script does both limits in one call.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

from bench.systems.limiter_rounds import CONSUME, RATES, RESOURCE, serve

#: Tokens and time of each limit in one hash; takes from all limits or from none.
_SCRIPT = """
local now, fields, left = tonumber(ARGV[1]), {}, {}
for i = 2, #ARGV, 4 do
  local name, rate, burst, cost = ARGV[i], tonumber(ARGV[i+1]), tonumber(ARGV[i+2]), tonumber(ARGV[i+3])
  local found = redis.call('HMGET', KEYS[1], name, name .. ':at')
  local tokens = math.min(burst, (tonumber(found[1]) or burst) + (now - (tonumber(found[2]) or now)) * rate)
  if tokens < cost then return 0 end
  left[#left+1] = name; left[#left+1] = tostring(tokens - cost)
  left[#left+1] = name .. ':at'; left[#left+1] = ARGV[1]
end
redis.call('HSET', KEYS[1], unpack(left))
redis.call('EXPIRE', KEYS[1], 3600)
return 1
"""


def main(url: str, *, lua: bool) -> None:
    """Open the limiter and do the rounds."""
    if lua:
        _serve_script(url)
        return
    # No dependency of ours, so nothing knows its types.
    limits: Any = importlib.import_module("limits")
    storage = limits.storage.storage_from_string("memory://" if url.startswith("sqlite") else url)
    strategy = limits.strategies.FixedWindowRateLimiter(storage)
    items = [
        (limits.RateLimitItemPerMinute(burst, namespace=name), CONSUME[name])
        for name, (_, burst) in RATES.items()
    ]

    def acquire(entity: str) -> None:
        for item, cost in items:
            assert strategy.hit(item, entity, RESOURCE, cost=cost)

    serve(acquire, {"version": str(limits.__version__)})


def _serve_script(url: str) -> None:
    redis: Any = importlib.import_module("redis")
    script = redis.Redis.from_url(url).register_script(_SCRIPT)
    rules: list[Any] = []
    for name, (rate, burst) in RATES.items():
        rules += [name, rate / 60, burst, CONSUME[name]]

    def acquire(entity: str) -> None:
        assert script([f"{entity}:{RESOURCE}"], [time.time(), *rules])

    serve(acquire, {"version": f"redis-py {redis.__version__}"})


if __name__ == "__main__":
    main(sys.argv[1], lua=sys.argv[3:] == ["lua"])

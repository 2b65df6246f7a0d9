"""What has to happen at once, in Lua.

Names of one Octavo begin with its name in braces, so that a cluster would keep them together: values under `v:`, all
keys in the sorted set `i`, in byte order, those with an end in `e`, by when they end; leases under `l:`.
"""

from __future__ import annotations

from typing import Final

# KEYS: the value, all keys, the ends. ARGV: the key, and what value keys begin with.
_PUT: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function put(value, life)
    if life ~= '' then
        redis.call('SET', KEYS[1], value, 'PX', life)
        redis.call('ZADD', KEYS[3], now + life, ARGV[1])
    else
        redis.call('SET', KEYS[1], value)
        redis.call('ZREM', KEYS[3], ARGV[1])
    end
    redis.call('ZADD', KEYS[2], 0, ARGV[1])
end
local function drop(key)
    redis.call('ZREM', KEYS[2], key)
    redis.call('ZREM', KEYS[3], key)
end
local function sweep()
    for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 10)) do
        if redis.call('EXISTS', ARGV[2] .. key) == 0 then drop(key) end
    end
end
"""
# value, life
SET: Final = (
    _PUT
    + """
sweep()
put(ARGV[3], ARGV[4])
return 1
"""
)
# whether one is expected, the expected, whether one is set, the value, life
COMPARE_AND_SET: Final = (
    _PUT
    + """
local before = redis.call('GET', KEYS[1])
if ARGV[3] == '1' then
    if before ~= ARGV[4] then return 0 end
elseif before then
    return 0
end
if ARGV[5] == '1' then
    put(ARGV[6], ARGV[7])
else
    redis.call('DEL', KEYS[1])
    drop(ARGV[1])
end
return 1
"""
)
# by, window, the largest
INCREMENT: Final = (
    _PUT
    + """
local before = redis.call('GET', KEYS[1])
if before then
    local digits = string.match(before, '^%-?([1-9]%d*)$')
    if not (before == '0' or (digits and #digits <= 16)) then return 'no count' end
    if math.abs(tonumber(before)) > tonumber(ARGV[5]) then return 'no count' end
    if math.abs(tonumber(before) + tonumber(ARGV[3])) > tonumber(ARGV[5]) then return 'too far' end
else
    sweep()
end
local total = redis.call('INCRBY', KEYS[1], ARGV[3])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
    redis.call('ZADD', KEYS[3], now + ARGV[4], ARGV[1])
    redis.call('ZADD', KEYS[2], 0, ARGV[1])
    left = tonumber(ARGV[4])
end
return {total, left}
"""
)
DELETE: Final = (
    _PUT
    + """
drop(ARGV[1])
return redis.call('DEL', KEYS[1])
"""
)
# KEYS: all keys, the ends. ARGV: what value keys begin with, from, to, how many
SCAN: Final = """
local found, from = {}, ARGV[2]
while #found < 2 * ARGV[4] do
    local keys = redis.call('ZRANGEBYLEX', KEYS[1], from, ARGV[3], 'LIMIT', 0, ARGV[4] - #found / 2)
    if #keys == 0 then break end
    for _, key in ipairs(keys) do
        local value = redis.call('GET', ARGV[1] .. key)
        if value then
            found[#found + 1] = key
            found[#found + 1] = value
        else
            redis.call('ZREM', KEYS[1], key)
            redis.call('ZREM', KEYS[2], key)
        end
    end
    from = '(' .. keys[#keys]
end
return found
"""
# KEYS: the lease, the last fencing number of all. ARGV: life
ACQUIRE: Final = """
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
local time = redis.call('TIME')
local fence = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, time[1] * 1000000 + time[2])
fence = string.format('%.0f', fence)
redis.call('SET', KEYS[1], fence, 'PX', ARGV[1])
redis.call('SET', KEYS[2], fence)
return fence
"""
# KEYS: the lease. ARGV: the fencing number, life or 0
RENEW: Final = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
"""

-- The state of a rate, and the clock: for the scripts that follow it. The arithmetic is that of collections/gcra.ts. All
-- numbers are integers below 2^53, which Lua's numbers represent exactly.
--
-- A rate is one string: its used units, the time up to which it is refilled, all units that were refunded, the amount
-- that the units belong to, and the time since which it was never refilled completely. A rate that is refilled is the
-- same as one that does not exist, so it does not matter when Redis deletes it.

local UNITS_MAX = 9007199254740991
local KEPT_MS = 10000
local KEPT_MS_MAX = 300000000000

-- Tests set the time; otherwise it is that of the server, so that the clocks of the gateways do not matter.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

local function read_rate(text, amount, tick_ms)
  if not text then
    return { used = 0, last = now, refunded = 0, amount = amount, since = now }
  end
  local used, last, refunded, of, since = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  local rate = {
    used = tonumber(used),
    last = tonumber(last),
    refunded = tonumber(refunded),
    amount = tonumber(of),
    since = tonumber(since),
  }
  -- A clock that goes back refills nothing until it has caught up.
  if now > rate.last then
    local refilled = (math.floor(now / tick_ms) - math.floor(rate.last / tick_ms)) * rate.amount
    rate.used = refilled >= rate.used and 0 or rate.used - refilled
    rate.last = now
  end
  if rate.used == 0 then
    rate.refunded = 0
    rate.amount = amount
    rate.since = rate.last
  end
  return rate
end

-- Returns whether the rate belonged to another amount.
local function change_amount(rate, amount)
  if rate.amount == amount then
    return false
  end
  rate.used = math.ceil(rate.used / rate.amount * amount)
  rate.amount = amount
  return true
end

local function write_rate(key, rate, tick_ms)
  if rate.used == 0 then
    redis.call('DEL', key)
    return
  end
  local text = string.format('%.0f %.0f %.0f %.0f %.0f', rate.used, rate.last, rate.refunded, rate.amount, rate.since)
  local kept = math.min(math.ceil(rate.used / rate.amount) * tick_ms + KEPT_MS, KEPT_MS_MAX)
  redis.call('SET', key, text, 'PX', string.format('%.0f', kept))
end

-- Concurrent calls are a hash: for each process their number, and until when it counts without news of the process.
local PLACES_MS = 10000

local function read_places(text)
  if not text then
    return 0, 0
  end
  local count, till = string.match(text, '^(%d+) (%d+)$')
  return tonumber(count), tonumber(till)
end

local function write_places(key, process, count)
  if count <= 0 then
    redis.call('HDEL', key, process)
    return
  end
  redis.call('HSET', key, process, string.format('%.0f %.0f', count, now + PLACES_MS))
  redis.call('PEXPIRE', key, 6 * PLACES_MS)
end

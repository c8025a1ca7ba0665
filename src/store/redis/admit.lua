-- Checks and counts one call in all of its limits: all count it or none does.
--
-- KEYS: the mark of a filled Redis, rates, places. ARGV: time, process, 1 to count or 0 to look, the number of rates;
-- for each rate its amount, the units of one item, the milliseconds of a tick, the items of this call; for each limit
-- of concurrency its amount.
-- Returns 1 for admitted, 0 for refused, or -1 if Redis has lost its data; the time; for each rate the used units, the
-- refunded units and the time since which it is in use; for each limit of concurrency the calls of all processes.

local process = ARGV[2]
local counts = ARGV[3] == '1'
local rates = tonumber(ARGV[4])
local texts = redis.call('MGET', unpack(KEYS, 1, rates + 1))
if not texts[1] then
  return { -1, now }
end

local fits = true
local states = {}
for i = 1, rates do
  local at = 4 * i
  local amount, each = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local tick_ms, count = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local rate = read_rate(texts[i + 1], amount, tick_ms)
  if change_amount(rate, amount) then
    write_rate(KEYS[1 + i], rate, tick_ms)
  end
  if count > 0 and rate.used + count * each > amount * each then
    fits = false
  end
  states[i] = rate
end

local own = {}
local totals = {}
for i = 1, #KEYS - 1 - rates do
  local key = KEYS[1 + rates + i]
  local fields = redis.call('HGETALL', key)
  own[i] = 0
  totals[i] = 0
  for at = 1, #fields, 2 do
    local count, till = read_places(fields[at + 1])
    if fields[at] == process then
      own[i] = count
      totals[i] = totals[i] + count
    elseif till > now then
      totals[i] = totals[i] + count
    elseif counts then
      redis.call('HDEL', key, fields[at])
    end
  end
  if totals[i] >= tonumber(ARGV[4 + 4 * rates + i]) then
    fits = false
  end
end

local reply = { fits and 1 or 0, now }
for i = 1, rates do
  local rate = states[i]
  local count = tonumber(ARGV[4 * i + 4])
  if fits and counts and count > 0 then
    rate.used = math.min(rate.used + count * tonumber(ARGV[4 * i + 2]), UNITS_MAX)
    write_rate(KEYS[1 + i], rate, tonumber(ARGV[4 * i + 3]))
  end
  reply[#reply + 1] = rate.used
  reply[#reply + 1] = rate.refunded
  reply[#reply + 1] = rate.since
end
for i = 1, #totals do
  if fits and counts then
    write_places(KEYS[1 + rates + i], process, own[i] + 1)
    totals[i] = totals[i] + 1
  end
  reply[#reply + 1] = totals[i]
end
return reply

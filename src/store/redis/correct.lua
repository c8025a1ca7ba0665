-- Replaces estimated tokens of calls by the real numbers, and frees their concurrency slots.
--
-- KEYS: rates, places. ARGV: time, process, the number of rates; for each rate its amount, the units of one item, the
-- milliseconds of a tick, the items that were taken, the time of the take, what admit.lua returned for it (used units,
-- refunded units, time since which the rate was in use), the real number of items, and the amount of the rate now.

local process = ARGV[2]
local rates = tonumber(ARGV[3])
for i = 1, rates do
  local at = 3 + 10 * (i - 1)
  local function arg(n)
    return tonumber(ARGV[at + n])
  end
  local key = KEYS[i]
  local amount, each, tick_ms, taken, real = arg(1), arg(2), arg(3), arg(4), arg(9)
  local rate = read_rate(redis.call('GET', key), arg(10), tick_ms)
  if real > taken then
    rate.used = math.min(rate.used + (real - taken) * each, UNITS_MAX)
    write_rate(key, rate, tick_ms)
  elseif real < taken and rate.used > 0 and rate.amount == amount and rate.since == arg(8) then
    local used, refunded = arg(6), arg(7)
    local since = rate.refunded >= refunded and rate.refunded - refunded or UNITS_MAX - refunded + rate.refunded
    local ticks = math.floor(rate.last / tick_ms) - math.floor(arg(5) / tick_ms)
    local unfilled = used - ticks * amount - math.min(since, used - taken * each)
    local refund = math.min((taken - real) * each, unfilled, rate.used)
    if refund > 0 then
      rate.used = rate.used - refund
      if rate.refunded > UNITS_MAX - refund then
        rate.refunded = rate.refunded - (UNITS_MAX - refund)
      else
        rate.refunded = rate.refunded + refund
      end
      write_rate(key, rate, tick_ms)
    end
  end
end
for i = rates + 1, #KEYS do
  local count = read_places(redis.call('HGET', KEYS[i], process))
  write_places(KEYS[i], process, count - 1)
end

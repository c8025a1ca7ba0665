-- Raises rates to the use that was saved elsewhere. Redis may have less: it is empty, has loaded an old snapshot, or was
-- away while the gateways counted without it.
--
-- KEYS: rates. ARGV: time, process; for each rate its amount, the milliseconds of a tick, and the used units.

for i = 1, #KEYS do
  local at = 3 * i
  local amount, tick_ms, used = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local rate = read_rate(redis.call('GET', KEYS[i]), amount, tick_ms)
  change_amount(rate, amount)
  if used > rate.used then
    rate.used = math.min(used, UNITS_MAX)
    write_rate(KEYS[i], rate, tick_ms)
  end
end

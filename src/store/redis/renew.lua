-- Says that a process is alive and how many concurrent calls it has, so that a Redis that has lost data gets them back.
--
-- KEYS: places. ARGV: time, process; for each limit the calls of the process, and how many more it has asked for without
-- an answer yet. These may be counted or not.

local process = ARGV[2]
for i = 1, #KEYS do
  local sure, asked = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
  local count = read_places(redis.call('HGET', KEYS[i], process))
  if count < sure or count > sure + asked then
    count = sure + asked
  end
  write_places(KEYS[i], process, count)
end

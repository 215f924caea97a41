-- quit: the library, after first, of the scripts that release.

-- quit removes a waiter from a queue, for the release of its lock. If the release has changed the
-- lock, nothing fails from here on. Otherwise quit fails if the waiter stays: the master accepts no
-- writes, or our user must not write, for now. So the client sends the release again (L28, L97).
local function quit(queue, entries, waiter, changed)
  if not leave(queue, entries, waiter) and not changed and type(redis.pcall('zscore', queue, waiter)) == 'string' then
    redis.call('zrem', queue, waiter) -- fails
  end
end

-- quit: the library, after queue, of the scripts that release.

-- quit removes a waiter from a queue, for the release of its lock. If the release has deleted the
-- lock, nothing fails from here on. Otherwise quit fails if the waiter stays: the master accepts no
-- writes, or our user must not write, for now. So the client sends the release again (L28, L97).
local function quit(queue, entries, waiter, deleted)
  local left, erased = leave(queue, entries, waiter)
  if type(left) == 'table' and type(erased) == 'table' and not deleted then
    redis.call('zrem', queue, waiter) -- fails in the words of a command, whatever the version
  end
end

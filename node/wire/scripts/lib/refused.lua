-- refused: the library, after first and tell, of the scripts that refuse a waiter.

-- left returns for how many more ms a lock is held, or a pause lasts.
local function left(lock, queue, entries)
  local ms = redis.call('pttl', lock)
  if ms == -2 then
    local waiter, rest = first(queue, entries)
    ms = waiter == pause and rest or ms
  end
  return ms
end

-- want notifies the holder of a cached lock that another client waits for the lock.
local function want(lock, marker, holder, kind)
  if kind == 'C' then
    tell(lock, marker, waiterOf(holder), holder, ':c')
  end
end

-- tell: the library, after queue, of the scripts that notify a waiter.

-- shown returns this master's marker, or '' if the marker proves nothing. A server that was a
-- replica after the marker was written has another server's keys, and these may contain the
-- server's own earlier marker (S50). A valid marker names the replication ID from the last
-- promotion. pcall: without the INFO permission, heartbeats cannot see a promotion either.
local function shown(marker)
  local mark = redis.pcall('get', marker)
  if type(mark) ~= 'string' then
    return ''
  end
  local told = redis.pcall('info', 'replication')
  if type(told) ~= 'string' or string.find(told, 'master_replid2:0000000000000000000000000000000000000000', 1, true) then
    return mark -- it was never a replica
  end
  if string.find(told, 'master_replid2:', 1, true)
    and not string.find(mark, '.' .. string.match(told, 'master_replid:(%x+)'), 1, true) then
    return ''
  end
  return mark
end

-- tell notifies a waiter, on the channel of its client: MARKER, a tab, this master's time, a
-- newline, the LENGTH of the lock's name, the kind of notice, a space, the name and the value;
-- see ParseNotice. By the marker and the time the client recognizes a master that lost its
-- memory, or whose clock was set forward. tell returns false if the client is not subscribed.
-- pcall: without the PUBLISH permission the lock is still handed on, and the waiter finds it
-- with its next ask.
local function tell(lock, marker, waiter, value, what)
  local t = clock()
  local mark = shown(marker) .. '\t' .. t[1] .. ' ' .. t[2]
  return redis.pcall('publish', channelOf(marker, waiter), mark .. '\n' .. #lock .. what .. ' ' .. lock .. value) ~= 0
end

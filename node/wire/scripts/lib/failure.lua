-- failure: what stands before the scripts that make several calls in one.
-- It returns what pcall caught as the error that its call is answered by. Redis
-- before 7 puts the place before it.
local function failure(caught)
  if type(caught) == 'table' then
    return caught
  end
  caught = tostring(caught)
  return redis.error_reply(string.match(caught, '^%u+ ') and caught or 'ERR ' .. caught)
end


-- failure: the library of the scripts that make several calls in one. It returns what pcall
-- caught as an error reply. Redis before version 7 begins it with the position in the script.
local function failure(caught)
  if type(caught) == 'table' then
    return caught
  end
  caught = tostring(caught)
  return redis.error_reply(string.match(caught, '^%u+ ') and caught or 'ERR ' .. caught)
end


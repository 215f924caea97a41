end

-- fold: several calls of one script as one call. An error of one does not affect the others.
-- KEYS  the keys of each call, one call after the other   ARGV  their arguments, and the
-- number of calls
-- the reply of each call in turn
local n = tonumber(ARGV[#ARGV])
local keys, args = #KEYS / n, (#ARGV - 1) / n
local answers = {}
for i = 0, n - 1 do
  local fine, answer = pcall(run, {unpack(KEYS, i * keys + 1, (i + 1) * keys)}, {unpack(ARGV, i * args + 1, (i + 1) * args)})
  if not fine then
    answer = failure(answer)
  end
  answers[i + 1] = answer or false
end
return answers

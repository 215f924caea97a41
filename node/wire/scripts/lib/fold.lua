end

-- fold: several calls of one script as one call. What one of them meets does not
-- concern the others.
-- KEYS  the keys of each, one after the other   ARGV  their arguments, and how many
-- calls it is
-- the answer of each in turn
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

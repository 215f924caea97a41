-- KEYS: the resource's token. ARGV: ours; then of each command its number of words, and they.
local seen, ours = redis.call('GET', KEYS[1]) or '0', ARGV[1]

-- Numbers are exact to 2^53 here: decimals are compared by length, and then as text.
if #ours < #seen or #ours == #seen and ours < seen then
	return {0, seen}
end
redis.call('SET', KEYS[1], ours)

local replies, at = {1}, 2
while at <= #ARGV do
	local words = tonumber(ARGV[at])
	replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, at + words))
	at = at + 1 + words
end
return replies

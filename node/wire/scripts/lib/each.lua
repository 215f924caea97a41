-- each: the line before a script that one call runs several times.
local function run(KEYS, ARGV)

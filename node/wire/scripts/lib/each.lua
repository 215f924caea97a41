-- each: what stands before a script that is called several times in one.
local function run(KEYS, ARGV)

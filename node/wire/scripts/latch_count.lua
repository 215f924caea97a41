-- needs: latch
-- latch_count: return the number of arrivals, their digest or '', and 1 if the set is complete
-- ARGV[1] the lifetime of a new digest in ms
local n = size()
local sum, stored = digest(n)
if sum and not stored then store(n, sum, ARGV[1]) end
return {n, sum and text(sum) or '', whole() and 1 or 0}

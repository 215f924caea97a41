-- needs: latch
-- latch_count: how many have arrived, their digest or '', and 1 if these are all
-- ARGV[1] how long a digest that is made anew is kept, in ms
local n = size()
local sum, stored = digest(n)
if sum and not stored then store(n, sum, ARGV[1]) end
return {n, sum and text(sum) or '', whole() and 1 or 0}

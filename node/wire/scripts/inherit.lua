-- needs: number counter
-- inherit: raise the fencing counters of a master that joins a group.
-- KEYS... counters   ARGV... the least value of each
for i, counter in ipairs(KEYS) do raise(counter, ARGV[i]) end
return 1

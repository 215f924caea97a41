-- kept is the prefix in the value of a lock that stays although it was released: see
-- release.lua. No waiter has such a value, so that no request of the former holder extends it.
local kept = '!'

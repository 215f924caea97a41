-- wake: wake the first in line, for one who was woken and does not need it.
-- KEYS[1] the line of those who wait
-- 1 somebody was woken, 0 nobody was there
return wakeFirst(KEYS[1])

-- number: the library of the scripts that store numbers.

-- whole formats a number with all its digits: tostring keeps 14.
local function whole(x)
  return string.format('%.0f', x)
end

-- Reads ARGV from its beginning, one after the other.
local read = 0
local function arg()
  read = read + 1
  return ARGV[read]
end

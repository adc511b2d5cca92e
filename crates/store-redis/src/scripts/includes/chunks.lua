-- Commands with any number of words. The stack of a script holds about 8,000, so long lists are sent in chunks: only this
-- file unpacks. A chunk has an even number of words, so that a field stays with its value.
local CHUNK = 4000

-- Calls `use` with the words from the `first` on, a chunk at a time.
local function each_chunk(words, use, first)
  for from = first or 1, #words, CHUNK do use(unpack(words, from, math.min(from + CHUNK - 1, #words))) end
end

-- A command on one key that may be repeated for the rest of its words.
local function call_on(command, key, words)
  local count = #words
  for from = 1, count, CHUNK do redis.call(command, key, unpack(words, from, math.min(from + CHUNK - 1, count))) end
end

-- The values of these fields of a hash, in their order; false where there is none.
local function values_of(key, fields)
  local count = #fields
  if count == 0 then return {} end
  if count <= CHUNK then return redis.call('HMGET', key, unpack(fields)) end
  local values = {}
  for from = 1, count, CHUNK do
    local chunk = redis.call('HMGET', key, unpack(fields, from, math.min(from + CHUNK - 1, count)))
    for i = 1, #chunk do values[from + i - 1] = chunk[i] end
  end
  return values
end

-- One command, whose words are these. The sender keeps it below the size of a chunk and its first words.
local WORDS_MAX = CHUNK + 8
local function call_words(words, first, count)
  assert(count <= WORDS_MAX, 'a command of more words than a script can pass on')
  return redis.call(unpack(words, first, first + count - 1))
end

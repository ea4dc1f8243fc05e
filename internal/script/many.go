package script

import (
	"fmt"
	"strings"
)

// Many is a script for many locks in one call. Its keys and arguments are those of the first lock,
// in full, and of each further one its own; what is not a lock's own must be the same for all. The
// reply is an array: first what all replies have in common behind their letter, the head; then an
// element for each lock, in order: what the single script would have answered, without the head, or
// the empty string where that would have been an error. Then that lock has to be asked for by
// itself.
type Many struct {
	Script
	OwnKeys, OwnArgs int // of each lock, the first ones
}

// MaxMany bounds how many locks one call is for. A node does nothing else meanwhile.
const MaxMany = 64

// A shape is how many keys and arguments a script has, and how many of each, the first ones, differ
// from lock to lock.
type shape struct{ keys, args, ownKeys, ownArgs int }

// bundled makes a script, and the one for many, of a text that defines the head, and a function
// with the script's name, which takes a lock's own keys and arguments and returns a letter and what
// follows the head.
func bundled(name, text string, s shape) *Script {
	one := newScript(name, text+fmt.Sprintf(`
local letter, rest = %s(%s)
return letter .. head .. rest
`, name, s.own("", "")), s.keys)
	many := newScript(name+"_many", text+fmt.Sprintf(`
local replies, count = {head}, 1
local function take(...)
  local ok, letter, rest = pcall(%s, ...)
  count = count + 1
  replies[count] = not ok and '' or rest == '' and letter or letter .. rest
end
take(%s)
local a = %d
for k = %d, #KEYS - 1, %d do
  take(%s)
  a = a + %d
end
return replies
`, name, s.own("", ""), s.args, s.keys, s.ownKeys, s.own("k + ", "a + "), s.ownArgs), s.keys)
	one.Many = &Many{Script: *many, OwnKeys: s.ownKeys, OwnArgs: s.ownArgs}
	return one
}

// own is a lock's own keys and arguments, as Lua writes them.
func (s shape) own(key, arg string) string {
	var list []string
	for i := range s.ownKeys {
		list = append(list, fmt.Sprintf("KEYS[%s%d]", key, i+1))
	}
	for i := range s.ownArgs {
		list = append(list, fmt.Sprintf("ARGV[%s%d]", arg, i+1))
	}
	return strings.Join(list, ", ")
}

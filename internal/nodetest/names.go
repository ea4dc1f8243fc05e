package nodetest

import (
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
)

// names are lock names that something between us and the node's memory might mistake.
var names = map[string]string{
	"NUL":           "a\x00b",
	"braces":        "{a}b{",
	"invalid UTF-8": "\xff\xfe\xc3\x28",
	"unicode":       "täglich/✓",
	"line break":    "a\r\nb\n",
	"spaces":        " a  b ",
	"digits":        "12345678901234567890",
	"pattern":       "a*[b]?\\",
	"quotes":        `"a'` + "`%s%d",
	"one KiB":       strings.Repeat("x", 1024),
	"one MiB":       strings.Repeat("x", 1<<20),
}

var nameClaims = func() []claim {
	var claims []claim
	for what, name := range names {
		claims = append(claims, claim{what, func(a *asker) { a.named(name).livesALife() }})
	}
	return append(claims,
		claim{"names that differ in one byte are two", func(a *asker) {
			first, second := a.named("a\x00b"), a.named("a\x00c")
			first.acquire(first.wish("ql1:me/1"), script.Done)
			second.acquire(second.wish("ql1:me/2"), script.Done)
			first.wantHolder("ql1:me/1")
			second.wantHolder("ql1:me/2")
		}},
		claim{"owner tokens of any bytes are kept", func(a *asker) {
			for i, token := range rivals {
				if token == "" {
					continue
				}
				a := a.named("job" + digits(uint64(i)))
				a.acquire(a.wish(token), script.Done)
				a.wantHolder(token)
				a.extend(token, time.Minute, week, script.Done)
				a.release(token, script.Done)
			}
		}})
}()

// livesALife goes through all messages of a lock.
func (a *asker) livesALife() {
	w := a.wish("ql1:me/1")
	a.acquire(w, script.Done)
	a.wantHolder(w.Token)
	a.extend(w.Token, time.Minute, week, script.Done)
	a.wantTTL(a.keys.Lock, time.Minute)
	a.raise(w.Token, w.Proposed+7, script.Done)
	a.wantRegister(digits(w.Proposed + 7))
	a.acquire(a.wish("ql1:rival/1"), script.Rival)
	a.release(w.Token, script.Done)
	a.wantHolder("")
}

package quorum_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/quorum"
)

func TestAddrNames(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"localhost:6379":                          "localhost:6379",
		"[::1]:6379":                              "[::1]:6379",
		"redis://host:6379":                       "redis://host:6379",
		"redis://user:secret@host:6379/2":         "redis://host:6379/2",
		"rediss://:secret@host:6379":              "rediss://host:6379",
		"redis://user:se@cret@host:6379":          "redis://host:6379",
		"redis://host:6379?password=secret&db=1":  "redis://host:6379?db=1",
		"unix://user:secret@/run/redis.sock?db=1": "unix:///run/redis.sock?db=1",
	} {
		if got := quorum.AddrName(addr); got != want {
			t.Errorf("AddrName(%q) = %q, want %q", addr, got, want)
		}
		if strings.Contains(addr, "se@cret") {
			continue // shown without its password, and still no URL
		}
		if err := quorum.CheckAddr(addr); err != nil && !strings.Contains(addr, "password=") {
			t.Errorf("CheckAddr(%q): %v", addr, err)
		}
		node, err := quorum.Dial(addr, time.Second)
		if err != nil {
			if !strings.Contains(addr, "password=") {
				t.Errorf("Dial(%q): %v", addr, err)
			}
			continue
		}
		if node.Name() != want {
			t.Errorf("Dial(%q) is named %q, want %q", addr, node.Name(), want)
		}
		if err := node.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestBadAddrsAreNamedWithoutPassword(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"", "host", ":6379", "host:", "user:secret@host", "http://user:secret@host:1",
		"redis://user:secret@host:port", "redis://user:secret@host:1/db/x", "redis://:secret@[::1",
		"redis://user:secret@host:1/notanumber", "rediss://user:secret@ho st:1",
		"redis://user:secret%zz@host:1", "host:99999", "host:0", "host:-1",
		"redis://user:secret@host:99999", "rediss://user:secret@host:0",
	} {
		err := quorum.CheckAddr(addr)
		if err == nil {
			t.Errorf("CheckAddr(%q) has no fault to find", addr)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("CheckAddr(%q) shows the password: %v", addr, err)
		}
		if _, dialErr := quorum.Dial(addr, time.Second); dialErr == nil {
			t.Errorf("Dial(%q) took what CheckAddr refuses", addr)
		}
	}
}

func FuzzAddrHidesPassword(f *testing.F) {
	for _, seed := range []string{"redis://u:P@h:1", "P@h", "redis://h?password=P", "unix://u:P@/x"} {
		f.Add(seed, "hunter2hunter2")
	}
	f.Fuzz(func(t *testing.T, form, password string) {
		if len(password) < 8 || strings.ContainsAny(password, "/?#@:%& \\") {
			return
		}
		addr := strings.Replace(form, "P", password, 1)
		at := strings.LastIndexByte(addr, '@')
		if at < 0 || strings.Index(addr, password)+len(password) != at {
			return // not where a password stands
		}
		if strings.Contains(addr[at:], password) || strings.Contains(addr[:at-len(password)], password) {
			return // a host of the same name may be shown
		}
		if name := quorum.AddrName(addr); strings.Contains(name, password) {
			t.Errorf("AddrName(%q) = %q", addr, name)
		}
		if err := quorum.CheckAddr(addr); err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("CheckAddr(%q): %v", addr, err)
		}
	})
}

func TestSameAddr(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"host:1", "host:1", true},
		{"host:1", "HOST:1", true},
		{"host:1", "redis://host:1", true},
		{"host:1", "redis://user:pass@host:1/3", true},
		{"localhost:1", "127.0.0.1:1", true},
		{"host:1", "host:2", false},
		{"host:1", "other:1", false},
		{"unix:///a", "unix:///b", false},
		{"nonsense", "nonsense", true},
		{"nonsense", "host:1", false},
	} {
		if got := quorum.SameAddr(c.a, c.b); got != c.want {
			t.Errorf("SameAddr(%q, %q) = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

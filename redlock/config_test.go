package redlock_test

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/redlock"
)

var threeAddrs = []string{"a:1", "b:1", "c:1"}

// newClient makes a client that is closed with the test. It connects to nothing.
func newClient(t *testing.T, cfg redlock.Config) (*redlock.Client, error) {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := redlock.New(cfg)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func TestConfigsThatAreRefused(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "a:1"})
	twin := redis.NewClient(&redis.Options{Addr: "a:1", DB: 3})
	t.Cleanup(func() { client.Close(); twin.Close() })
	with := func(change func(*redlock.Config)) redlock.Config {
		cfg := redlock.Config{Addrs: threeAddrs}
		change(&cfg)
		return cfg
	}
	for name, c := range map[string]struct {
		cfg  redlock.Config
		says []string // each field at fault
	}{
		"no node": {redlock.Config{}, []string{"Addrs: no address"}},
		"both kinds": {redlock.Config{Addrs: threeAddrs, Clients: []*redis.Client{client}},
			[]string{"Addrs and Clients"}},
		"an address twice": {redlock.Config{Addrs: []string{"a:1", "b:1", "a:1"}},
			[]string{"Addrs[0] and Addrs[2]", "a:1"}},
		"an address twice in two spellings": {
			redlock.Config{Addrs: []string{"redis://u:secret@A:1/2", "a:1", "c:1"}},
			[]string{"Addrs[0] and Addrs[1]"}},
		"an address twice, with zeros": {redlock.Config{Addrs: []string{"a:1", "a.:01", "c:1"}},
			[]string{"Addrs[0] and Addrs[1]"}},
		"an address twice, of version 6": {redlock.Config{Addrs: []string{"[::1]:1", "[0:0::1]:1", "c:1"}},
			[]string{"Addrs[0] and Addrs[1]"}},
		"white space": {redlock.Config{Addrs: []string{"a:1", " b:1", "c:1 "}},
			[]string{"Addrs[1]", "Addrs[2]", "white space"}},
		"all durations": {redlock.Config{Addrs: threeAddrs, TTL: -1, MaxTTL: 1 << 62, NodeTimeout: -1,
			RenewEvery: -5}, []string{"TTL -1ns", "MaxTTL 1281023h", "NodeTimeout -1ns", "RenewEvery -5ns"}},
		"no address": {redlock.Config{Addrs: []string{"a:1", "", "c"}},
			[]string{"Addrs[1]", "Addrs[2]"}},
		"another scheme": {redlock.Config{Addrs: []string{"http://u:secret@a:1", "b:1", "c:1"}},
			[]string{"Addrs[0]"}},
		"a nil client": {redlock.Config{Clients: []*redis.Client{client, nil}}, []string{"Clients[1]"}},
		"a client twice": {redlock.Config{Clients: []*redis.Client{client, client}},
			[]string{"Clients[0] and Clients[1]"}},
		"a server twice": {redlock.Config{Clients: []*redis.Client{client, nil, twin}},
			[]string{"Clients[0] and Clients[2]", "Clients[1]"}},
		"too many nodes": {redlock.Config{Addrs: make([]string, 65)}, []string{"65 nodes", "Addrs[64]"}},
		"TTL too short":  {with(func(c *redlock.Config) { c.TTL = 999 * time.Microsecond }), []string{"TTL 999µs"}},
		"TTL negative":   {with(func(c *redlock.Config) { c.TTL = -1 }), []string{"TTL -1ns"}},
		"TTL without validity": {with(func(c *redlock.Config) { c.TTL = 2 * time.Millisecond }),
			[]string{"TTL 2ms", "no validity"}},
		"TTL above MaxTTL": {with(func(c *redlock.Config) { c.TTL, c.MaxTTL = 11*time.Second, 10*time.Second }),
			[]string{"TTL 11s: above MaxTTL 10s"}},
		"MaxTTL huge": {with(func(c *redlock.Config) { c.MaxTTL = math.MaxInt64 }), []string{"MaxTTL"}},
		"TTL huge":    {with(func(c *redlock.Config) { c.TTL = math.MaxInt64 }), []string{"MaxTTL"}},
		"MaxTTL negative": {with(func(c *redlock.Config) { c.MaxTTL = -time.Second }),
			[]string{"MaxTTL -1s"}},
		"NodeTimeout too long": {with(func(c *redlock.Config) { c.NodeTimeout = 3 * time.Second }),
			[]string{"NodeTimeout 3s: above TTL/4, 2.5s"}},
		"NodeTimeout negative": {with(func(c *redlock.Config) { c.NodeTimeout = -1 }),
			[]string{"NodeTimeout -1ns"}},
		"RenewEvery too long": {with(func(c *redlock.Config) { c.TTL, c.RenewEvery = 9*time.Second, 3*time.Second+1 }),
			[]string{"RenewEvery 3.000000001s: above TTL/3, 3s"}},
		"RenewEvery negative": {with(func(c *redlock.Config) { c.RenewEvery = -1 }),
			[]string{"RenewEvery -1ns"}},
		"DriftFactor negative":   {with(func(c *redlock.Config) { c.DriftFactor = -0.01 }), []string{"DriftFactor -0.01"}},
		"DriftFactor too large":  {with(func(c *redlock.Config) { c.DriftFactor = 0.5 }), []string{"DriftFactor 0.5"}},
		"DriftFactor no number":  {with(func(c *redlock.Config) { c.DriftFactor = math.NaN() }), []string{"DriftFactor NaN"}},
		"Identity too long":      {with(func(c *redlock.Config) { c.Identity = strings.Repeat("i", 129) }), []string{"Identity"}},
		"Identity not printable": {with(func(c *redlock.Config) { c.Identity = "a\x1b[31m" }), []string{"Identity"}},
		"Identity not UTF-8":     {with(func(c *redlock.Config) { c.Identity = "a\xff" }), []string{"Identity"}},
		"Prefix too long":        {with(func(c *redlock.Config) { c.Prefix = strings.Repeat("p", 1025) }), []string{"Prefix"}},
		"all of it at once": {redlock.Config{Addrs: []string{"a:1", "a:1", "b"}, TTL: 10 * time.Second,
			MaxTTL: time.Second, NodeTimeout: time.Minute, RenewEvery: time.Minute, DriftFactor: -1,
			Identity: "\n", Prefix: strings.Repeat("p", 1025)},
			[]string{"Addrs[0] and Addrs[1]", "Addrs[2]", "TTL 10s", "NodeTimeout 1m0s",
				"RenewEvery 1m0s", "DriftFactor -1", "Identity", "Prefix"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newClient(t, c.cfg)
			wantIs(t, err, redlock.ErrInvalid)
			for _, want := range c.says {
				if text := fmt.Sprint(err); !strings.Contains(text, want) {
					t.Errorf("got %q, want it to say %q", text, want)
				}
			}
			if strings.Contains(fmt.Sprint(err), "secret") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

func TestConfigsThatAreTaken(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "a:1"})
	t.Cleanup(func() { client.Close() })
	for name, cfg := range map[string]redlock.Config{
		"addresses alone":     {Addrs: threeAddrs},
		"every kind of them":  {Addrs: []string{"a:1", "redis://u:p@b:1/3", "rediss://c:1", "unix:///run/d"}},
		"clients of your own": {Clients: []*redis.Client{client}},
		"edges": {Addrs: threeAddrs, TTL: 12 * time.Second, MaxTTL: redlock.MaxTTL,
			NodeTimeout: 3 * time.Second, RenewEvery: 4 * time.Second, DriftFactor: 1e-9,
			Identity: strings.Repeat("i", redlock.MaxIdentityLen),
			Prefix:   strings.Repeat("p", redlock.MaxNameLen)},
		"the shortest TTL":        {Addrs: threeAddrs, TTL: 3 * time.Millisecond},
		"the longest":             {Addrs: threeAddrs, TTL: redlock.MaxTTL},
		"MaxTTL alone, a short":   {Addrs: threeAddrs, MaxTTL: time.Second},
		"MaxTTL alone, a long":    {Addrs: threeAddrs, MaxTTL: time.Hour},
		"an identity of any kind": {Addrs: threeAddrs, Identity: "pod/4, größer/1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := newClient(t, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	if err := client.Ping(t.Context()).Err(); err != nil && strings.Contains(err.Error(), "client is closed") {
		t.Error("Close closed a client of the user's own")
	}
}

func TestDoubtfulConfigsAreWarnedOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  redlock.Config
		says []string // none: no warning
	}{
		"one node":            {redlock.Config{Addrs: threeAddrs[:1]}, []string{"one node is no quorum"}},
		"two nodes":           {redlock.Config{Addrs: threeAddrs[:2]}, []string{"even number of nodes, 2", "than 1 would"}},
		"three nodes":         {redlock.Config{Addrs: threeAddrs}, nil},
		"four nodes":          {redlock.Config{Addrs: append([]string{"d:1"}, threeAddrs...)}, []string{"even number of nodes, 4", "than 3 would"}},
		"no restart guard":    {redlock.Config{Addrs: threeAddrs, DisableRestartGuard: true}, []string{"DisableRestartGuard"}},
		"no guard, two nodes": {redlock.Config{Addrs: threeAddrs[:2], DisableRestartGuard: true}, []string{"DisableRestartGuard", "even"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var book logbook
			c.cfg.Logger = book.logger()
			if _, err := newClient(t, c.cfg); err != nil {
				t.Fatal(err)
			}
			text := book.String()
			if got := strings.Count(text, "level=WARN"); (got == 0) != (len(c.says) == 0) {
				t.Errorf("%d warnings: %s", got, text)
			}
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("got log %q, want it to say %q", text, want)
				}
			}
			if strings.Contains(text, "level=ERROR") {
				t.Errorf("got log %q, want warnings", text)
			}
		})
	}
}

func TestPasswordsAreNeverShown(t *testing.T) {
	t.Parallel()
	for addr, shown := range map[string]string{ // one node each, so that each is named for certain
		"redis://user:secret@127.0.0.1:1/0": "redis://127.0.0.1:1/0",
		"redis://:secret@127.0.0.1:2":       "redis://127.0.0.1:2",
		"rediss://u:secret@127.0.0.1:3":     "rediss://127.0.0.1:3",
	} {
		var book logbook
		var told diary
		c, err := newClient(t, redlock.Config{Logger: book.logger(), Observer: told.observer(),
			Addrs: []string{addr}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.TryLock(t.Context(), "k")
		wantIs(t, err, redlock.ErrNoQuorum)
		for what, text := range map[string]string{
			"error": fmt.Sprint(err), "error in full": fmt.Sprintf("%+v", err), "log": book.String(),
			"nodes": fmt.Sprint(told.nodes),
		} {
			if strings.Contains(text, "secret") {
				t.Errorf("%s: %s", what, text)
			}
		}
		if !strings.Contains(fmt.Sprint(err), shown) {
			t.Errorf("got %v, want the address without its password, %s", err, shown)
		}
	}
}

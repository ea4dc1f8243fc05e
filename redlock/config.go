package redlock

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/quorum"
)

// Defaults of Config.
const (
	DefaultTTL         = 10 * time.Second
	DefaultNodeTimeout = 250 * time.Millisecond
	DefaultDriftFactor = 0.01
)

// Limits of what can be asked for.
const (
	// MaxTTL is the longest Config.MaxTTL. A lock that needs longer is renewed.
	MaxTTL = 7 * 24 * time.Hour
	// MaxNameLen is the longest name, in bytes.
	MaxNameLen = 1024
	// MaxIdentityLen is the longest Config.Identity, in bytes.
	MaxIdentityLen = 128
)

// Config says which nodes to use and how. The zero value of a field means its default. All faults
// of a Config are reported together, by one error that matches ErrInvalid and names the fields.
type Config struct {
	// Addrs are the nodes, one address each: host:port, redis://user:pass@host:port/db, rediss://
	// (TLS) or unix:///path. The nodes must be independent of each other: no replicas of one
	// another, no members of one cluster. An odd number is best: a fourth node makes three no
	// safer, because the majority grows with it. Exactly one of Addrs and Clients is set.
	Addrs []string

	// Clients are nodes as go-redis clients of your own, for options that an address cannot say:
	// TLS with your CA, ACL users, Sentinel fail-over. They are not closed by us. Their time-outs
	// and retries may be anything: NodeTimeout holds on top of them. With Addrs a reply has at most
	// 1 MiB; with Clients go-redis allocates whatever length a hostile node announces.
	Clients []*redis.Client

	// TTL is how long a lock outlives the death of its holder, and so how long the others wait
	// then. A living holder renews it. Default 10 s, at least 1 ms, at most MaxTTL.
	TTL time.Duration

	// MaxTTL: no lock asks for more, by WithTTL or otherwise. A node that has lost its memory
	// gives no vote for this long, and the largest of all users of the nodes counts, so use the
	// same everywhere. Default TTL.
	MaxTTL time.Duration

	// NodeTimeout is how long one node's answer may take; a slower node counts as one without a
	// vote. TryLock and Unlock take at most twice as long. Default 250 ms, or TTL/4 if that is
	// less; at most TTL/4, so that a lock has most of its life left when it is won.
	NodeTimeout time.Duration

	// DriftFactor is how far two clocks may go apart, as a part of the time that passes. Each
	// validity is shortened by TTL*DriftFactor + 2 ms (the Redlock specification). Default 0.01;
	// from 0 on would mean default, so the least that can be said is a small positive number.
	DriftFactor float64

	// RenewEvery is when a held lock is renewed. Default TTL/3, at most that, so that a failed
	// renewal can be repeated.
	RenewEvery time.Duration

	// Prefix stands before every key, to keep applications on the same nodes apart. Default none:
	// then the key of a lock is its name, as with redsync, and both libraries exclude each other.
	Prefix string

	// Identity is shown to rivals and in errors. Default host:pid. Printable, at most 128 bytes.
	Identity string

	// DisableRestartGuard lets nodes that lost their memory vote at once. Two can then hold one
	// lock after a node restarted without its data, and fencing tokens can fall.
	DisableRestartGuard bool

	// TrustReplicas says that no replica of these nodes is ever promoted while its primary may
	// live. Without it, a node that has replicas must have min-replicas-to-write set.
	TrustReplicas bool

	// lookOnly is for the command: Nodes writes nothing, not even on a node never spoken to.
	lookOnly bool

	// Logger is for warnings and errors. Default slog.Default().
	Logger *slog.Logger

	// Observer is told what happens. Default nobody.
	Observer *Observer
}

// withDefaults fills in what was left out and refuses what cannot be, all faults at once.
func (cfg Config) withDefaults() (Config, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, invalid(format, args...)) }

	cfg.checkNodes(fault)
	cfg.fillDurations()
	cfg.checkDurations(fault)
	if cfg.DriftFactor == 0 {
		cfg.DriftFactor = DefaultDriftFactor
	}
	if !(cfg.DriftFactor > 0 && cfg.DriftFactor < 0.5) {
		fault("DriftFactor %v: must be between 0 and 0.5", cfg.DriftFactor)
	} else if cfg.TTL >= time.Millisecond {
		if drift := quorum.Drift(cfg.TTL, cfg.DriftFactor); drift >= cfg.TTL {
			fault("TTL %v: no validity is left after the drift allowance of %v", cfg.TTL, drift)
		}
	}
	if cfg.Identity == "" {
		cfg.Identity = defaultIdentity()
	}
	if err := checkIdentity(cfg.Identity); err != "" {
		fault("Identity %q: %s", cfg.Identity, err)
	}
	if len(cfg.Prefix) > MaxNameLen {
		fault("Prefix: %d bytes, at most %d", len(cfg.Prefix), MaxNameLen)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return cfg, errors.Join(faults...)
}

func (cfg *Config) checkNodes(fault func(string, ...any)) {
	n := len(cfg.Addrs) + len(cfg.Clients)
	switch {
	case n == 0:
		fault("Addrs: no address; name the nodes in Addrs, or give clients of your own in Clients")
	case len(cfg.Addrs) > 0 && len(cfg.Clients) > 0:
		fault("Addrs and Clients: both are set; use one of them")
	case n > quorum.MaxNodes:
		fault("Addrs or Clients: %d nodes, at most %d", n, quorum.MaxNodes)
	}
	for i, addr := range cfg.Addrs {
		if err := quorum.CheckAddr(addr); err != nil {
			fault("Addrs[%d]: %v", i, err)
			continue
		}
		for j := range i {
			if quorum.SameAddr(cfg.Addrs[j], addr) {
				fault("Addrs[%d] and Addrs[%d]: the same address twice (%s); it would vote twice",
					j, i, quorum.AddrName(addr))
			}
		}
	}
	for i, client := range cfg.Clients {
		if client == nil {
			fault("Clients[%d]: nil", i)
			continue
		}
		for j := range i {
			other := cfg.Clients[j]
			switch {
			case other == nil:
			case other == client:
				fault("Clients[%d] and Clients[%d]: the same client twice; it would vote twice", j, i)
			case sameServer(other.Options(), client.Options()):
				fault("Clients[%d] and Clients[%d]: the same address twice (%s); it would vote twice",
					j, i, client.Options().Addr)
			}
		}
	}
}

// sameServer reports whether two clients surely lead to one server. A Sentinel client's address is
// a placeholder, so it says nothing.
func sameServer(a, b *redis.Options) bool {
	return a.Network == b.Network && a.Addr == b.Addr && a.Addr != sentinelAddr
}

// sentinelAddr is the address that go-redis gives a Sentinel client.
const sentinelAddr = "FailoverClient"

func (cfg *Config) fillDurations() {
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
		if cfg.MaxTTL > 0 {
			cfg.TTL = min(cfg.TTL, cfg.MaxTTL)
		}
	}
	if cfg.MaxTTL == 0 {
		cfg.MaxTTL = cfg.TTL
	}
	ttl := cfg.TTL
	if ttl < time.Millisecond { // a fault: it is not to be told again of the fields that follow from it
		ttl = DefaultTTL
	}
	if cfg.NodeTimeout == 0 {
		cfg.NodeTimeout = min(DefaultNodeTimeout, ttl/4)
	}
	if cfg.RenewEvery == 0 {
		cfg.RenewEvery = ttl / 3
	}
}

func (cfg *Config) checkDurations(fault func(string, ...any)) {
	possible := cfg.TTL >= time.Millisecond
	if !possible {
		fault("TTL %v: at least 1ms", cfg.TTL)
	}
	switch {
	case cfg.MaxTTL > MaxTTL:
		fault("MaxTTL %v: at most %v; a lock that needs longer is renewed", cfg.MaxTTL, MaxTTL)
	case possible && cfg.TTL > cfg.MaxTTL:
		fault("TTL %v: above MaxTTL %v", cfg.TTL, cfg.MaxTTL)
	}
	switch {
	case cfg.NodeTimeout <= 0:
		fault("NodeTimeout %v: must be positive", cfg.NodeTimeout)
	case possible && cfg.NodeTimeout > cfg.TTL/4:
		fault("NodeTimeout %v: above TTL/4, %v (TTL %v)", cfg.NodeTimeout, cfg.TTL/4, cfg.TTL)
	}
	switch {
	case cfg.RenewEvery <= 0:
		fault("RenewEvery %v: must be positive", cfg.RenewEvery)
	case possible && cfg.RenewEvery > cfg.TTL/3:
		fault("RenewEvery %v: above TTL/3, %v (TTL %v)", cfg.RenewEvery, cfg.TTL/3, cfg.TTL)
	}
}

// warnings are what is allowed and perhaps not meant.
func (cfg *Config) warnings() (warnings []string) {
	n := len(cfg.Addrs) + len(cfg.Clients)
	switch {
	case n == 1:
		warnings = append(warnings, "one node is no quorum: when it fails there are no locks,"+
			" and when it forgets there is no other to know better")
	case n%2 == 0:
		warnings = append(warnings, fmt.Sprintf("an even number of nodes, %d, tolerates no more"+
			" failures than %d would", n, n-1))
	}
	if cfg.DisableRestartGuard {
		warnings = append(warnings, "DisableRestartGuard: a node that restarts without its data"+
			" votes at once; two may then hold one lock, and fencing tokens may fall")
	}
	return warnings
}

func defaultIdentity() string {
	host, err := os.Hostname()
	if err != nil || checkIdentity(host) != "" || len(host) > MaxIdentityLen-16 {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// checkIdentity says what is wrong with an identity: it is shown in logs and terminals of others.
func checkIdentity(identity string) string {
	switch {
	case len(identity) > MaxIdentityLen:
		return fmt.Sprintf("%d bytes, at most %d", len(identity), MaxIdentityLen)
	case !utf8.ValidString(identity):
		return "not valid UTF-8"
	case strings.ContainsFunc(identity, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has characters that cannot be printed"
	}
	return ""
}

// checkName refuses names that cannot be. Any bytes will do otherwise: a name is used as it is, so
// that different names are never the same lock.
func checkName(name string) error {
	switch {
	case name == "":
		return invalid("name is empty")
	case len(name) > MaxNameLen:
		return invalid("name of %d bytes, at most %d", len(name), MaxNameLen)
	case strings.HasPrefix(name, "ql:"):
		return invalid("name %q begins with \"ql:\", which is kept for our own keys", name)
	}
	return nil
}

// noEnd stands for "never": far enough to be out of the way, near enough not to overflow.
const noEnd = time.Duration(math.MaxInt64 / 4)

package redisproc

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quorumlock/quorumlock/internal/loopback"
)

// An Option changes how the nodes of one Start are set up; all of them alike.
type Option func(*settings)

type settings struct {
	lines    []string // of redis.conf, after ours
	password string   // of the default user; "" for none
	acl      []string // lines of the ACL file; nil for none
	secret   string   // of our own user in the ACL file
	clock    bool     // the wall clock can be stepped

	reserve func() (*loopback.Port, error) // loopback.Reserve; another one in tests
}

// WithConfig adds lines of redis.conf after our own, so that they win: "appendonly yes",
// "save 3600 1", "maxmemory 2mb". By default nothing is written to disk. Paths are relative to
// the node's Dir. What this package needs to know has options of its own and is refused here.
func WithConfig(lines ...string) Option {
	return func(s *settings) { s.lines = append(s.lines, lines...) }
}

// WithPassword makes the nodes ask for a password (requirepass).
func WithPassword(password string) Option {
	return func(s *settings) { s.password = password }
}

// WithACL gives the nodes an ACL file of these lines ("user app on >secret ~* +@all"). A user
// named redisproc with every right is added for the package's own use (Do, ReplicaOf).
func WithACL(lines ...string) Option {
	return func(s *settings) { s.acl = append(s.acl, lines...) }
}

// WithClock makes StepClock possible. It needs gcc or another C compiler, and Linux; Start
// returns ErrNoCompiler where there is none.
func WithClock() Option {
	return func(s *settings) { s.clock = true }
}

// reserved are the directives with an option of their own, or that would break a node.
var reserved = []string{
	"requirepass", "masterauth", "masteruser", "user", "aclfile",
	"port", "bind", "dir", "logfile", "daemonize", "replicaof", "slaveof", "supervised",
}

func collect(opts []Option) (settings, error) {
	s := settings{secret: rand.Text(), reserve: loopback.Reserve}
	for _, opt := range opts {
		opt(&s)
	}
	return s, s.validate()
}

// validate finds all faults at once.
func (s *settings) validate() error {
	var faults []error
	for _, line := range s.lines {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if slices.Contains(reserved, strings.ToLower(word)) {
			faults = append(faults, fmt.Errorf("redisproc: WithConfig: %s is not for here", word))
		}
	}
	if s.password != "" && s.acl != nil {
		faults = append(faults, errors.New("redisproc: WithPassword and WithACL: one or the other"))
	}
	return errors.Join(faults...)
}

// credentials of the user that may do everything on a node; no password: no AUTH is needed.
func (s *settings) credentials() (user, password string) {
	if s.acl != nil {
		return "redisproc", s.secret
	}
	return "default", s.password
}

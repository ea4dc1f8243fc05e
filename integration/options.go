package integration

import (
	"crypto/rand"
	"fmt"
)

// An Option changes how the nodes of one cluster are set up; all of them alike.
type Option func(*settings)

type settings struct {
	lines    []string // of redis.conf, after ours
	password string   // of the default user; "" for none
	user     string   // a line of the ACL; "" for none
	ca       *Authority
	clock    bool
	secret   string // of the user that Do is
	port     int    // where it listens
	args     []string
	lender   *Node // whose network it uses; nil: its own
	lent     []int // ports of those who use its network
	plain    bool  // no options: all of this kind are alike
}

// WithConfig adds lines of redis.conf after our own, so that they win.
func WithConfig(lines ...string) Option {
	return func(s *settings) { s.lines = append(s.lines, lines...) }
}

// WithPassword makes the nodes ask the default user for a password.
func WithPassword(password string) Option {
	return func(s *settings) { s.password = password }
}

// WithUser adds a user by a line of an ACL file ("user app on >secret ~* +get"), and shuts the door
// on the default user.
func WithUser(line string) Option {
	return func(s *settings) { s.user = line }
}

// WithTLS lets the nodes speak TLS only, with certificates of this authority.
func WithTLS(ca *Authority) Option {
	return func(s *settings) { s.ca = ca }
}

// WithClock makes StepClock possible.
func WithClock() Option {
	return func(s *settings) { s.clock = true }
}

func collect(opts []Option) settings {
	s := settings{secret: rand.Text(), port: redisPort, plain: len(opts) == 0}
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// The paths of a node inside its container. Config has a name of its own per node: INFO shows it,
// so that no other server on a port of before is taken for this one.
const (
	home      = "/quorumlock"
	clockFile = home + "/clock"
	emptyFile = home + "/empty"
)

func configFile(id string) string { return fmt.Sprintf("%s/%s.conf", home, id) }

// admin is the user that Do is; it can do everything, whatever the tests take from others.
const admin = "integration"

// config is the text of a node's redis.conf.
func (s *settings) config() (lines []string) {
	lines = []string{
		"bind * -::*", // of the container; the engine maps it to 127.0.0.1
		"protected-mode no",
		fmt.Sprint("port ", s.port),
		"dir " + home + "/data",
		`save ""`,
		"appendonly no",
		"repl-diskless-sync-delay 0", // a replica is to be in step at once
		fmt.Sprintf("user %s on >%s ~* &* +@all", admin, s.secret),
	}
	if s.ca != nil {
		lines = append(lines, "port 0", fmt.Sprint("tls-port ", s.port), "tls-auth-clients no",
			"tls-cert-file "+home+"/node.crt", "tls-key-file "+home+"/node.key",
			"tls-ca-cert-file "+home+"/ca.crt")
	}
	if s.password != "" {
		lines = append(lines, "requirepass "+s.password)
	}
	if s.user != "" {
		lines = append(lines, "user default off", s.user)
	}
	return append(lines, s.lines...)
}

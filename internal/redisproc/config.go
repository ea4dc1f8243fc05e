package redisproc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The files of a node, in its home: redis.conf, users.acl, clock and clock.so beside the log;
// what the server writes goes to data, which Restart may empty.
func (n *Node) homeFile(name string) string { return filepath.Join(n.home, name) }

// writeConfig writes what the server reads at its start.
func (n *Node) writeConfig() error {
	conf := strings.Join(n.configLines(), "\n") + "\n"
	err := os.WriteFile(n.homeFile("redis.conf"), []byte(conf), 0o600)
	if n.settings.acl == nil {
		return err
	}
	users := append([]string{"user redisproc on >" + n.settings.secret + " ~* &* +@all"},
		n.settings.acl...)
	acl := strings.Join(users, "\n") + "\n"
	return errors.Join(err, os.WriteFile(n.homeFile("users.acl"), []byte(acl), 0o600))
}

func (n *Node) configLines() []string {
	lines := []string{
		"bind 127.0.0.1",
		fmt.Sprintf("port %d", n.port.Number()),
		fmt.Sprintf("dir %q", n.Dir()),
		`logfile ""`, // standard output, which spawn sends to the log
		"daemonize no",
		`save ""`,
		"appendonly no",
		// A replica is to be in step at once, not after the five seconds that a primary waits
		// by default for more replicas to turn up.
		"repl-diskless-sync-delay 0",
	}
	if n.settings.password != "" {
		lines = append(lines, fmt.Sprintf("requirepass %q", n.settings.password))
	}
	if n.settings.acl != nil {
		lines = append(lines, fmt.Sprintf("aclfile %q", n.homeFile("users.acl")))
	}
	lines = append(lines, n.settings.lines...)
	return append(lines, n.replicaLines()...)
}

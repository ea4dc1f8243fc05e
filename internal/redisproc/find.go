package redisproc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// ServerVariable names the environment variable that says which redis-server to start.
const ServerVariable = "QUORUMLOCK_REDIS_SERVER"

// ErrNoServer says that there is no redis-server to start. Nothing was started. Install one, or
// do without what needs it.
var ErrNoServer = errors.New("redisproc: no redis-server")

// Find returns the path of the redis-server that Start would use: the one that
// QUORUMLOCK_REDIS_SERVER names, else the first on PATH. Its error is ErrNoServer, and its text
// says what to do.
func Find() (string, error) {
	name, chosen := os.LookupEnv(ServerVariable)
	if !chosen || name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case chosen && name != "redis-server":
		return "", fmt.Errorf("%w: %s says %q: %w", ErrNoServer, ServerVariable, name, err)
	}
	return "", fmt.Errorf("%w on PATH: install it (Debian and Ubuntu: apt-get install "+
		"redis-server; macOS: brew install redis) or set %s to its path", ErrNoServer, ServerVariable)
}

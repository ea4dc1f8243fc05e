package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// authority signs the certificates of nodes that speak TLS. This process trusts it as a system
// root: rediss:// addresses have no other way to name an authority.
var authority *Authority

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	redis.SetLogger(silent{}) // dials that fail are what these tests are about
	if os.Getenv(taskVariable) != "" {
		return m.Run() // a process of a history: it may be killed, and is to leave nothing then
	}
	dir, err := os.MkdirTemp("", "integration-")
	if err == nil {
		authority, err = NewAuthority()
	}
	roots := filepath.Join(dir, "roots.pem")
	if err == nil {
		err = errors.Join(os.WriteFile(roots, authority.PEM(), 0o600), os.Setenv("SSL_CERT_FILE", roots))
	}
	defer os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go removeOnInterrupt(dir)
	status := m.Run()
	if err := closeAll(); err != nil { // those that wait for another test
		fmt.Fprintln(os.Stderr, err)
		status = cmp.Or(status, 1)
	}
	return endRows(status)
}

// removeOnInterrupt removes all containers of this process when it is told to end.
func removeOnInterrupt(dir string) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	<-told
	fmt.Fprintln(os.Stderr, "integration: interrupted; removing the containers")
	err := closeAll()
	os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(130)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/quorumlock/quorumlock/internal/door"
	"github.com/quorumlock/quorumlock/quorum"
	"github.com/quorumlock/quorumlock/redlock"
)

const usage = `Usage: quorumlock [flags] COMMAND

  nodes            how each node is, and whether it votes
  inspect NAME     who holds a lock, for how long, on which nodes
  watch NAME       the same, a line for each change, until interrupted or -for is over
  free NAME        free a lock, whoever holds it; says what it would do, and does it with -yes
  admit [NODE...]  your word that these nodes (none named: all) are new and hold no forgotten
                   lock, so that they vote at once; said of a node that forgot a lock which is
                   still held, it makes two holders possible

Flags, before or after the command:
`

const statuses = `
Exit status: 0 done, 1 other errors, 2 usage, 3 held by another, 4 no quorum, 5 lost, 6 not held.
`

// The exit statuses.
const (
	exitOK = iota
	exitOther
	exitUsage
	exitHeld
	exitNoQuorum
	exitLost
	exitNotHeld
)

func main() {
	quorum.Mute()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// A command does one thing to the nodes. Its error decides the exit status.
type command struct {
	names   func(n int) bool // whether that many arguments are right
	do      func(t *tool, ctx context.Context) error
	lacking string
}

var commands = map[string]command{
	"nodes":   {exactly(0), (*tool).nodes, "nodes takes no arguments"},
	"inspect": {exactly(1), (*tool).inspect, "inspect takes the name of a lock"},
	"watch":   {exactly(1), (*tool).watch, "watch takes the name of a lock"},
	"free":    {exactly(1), (*tool).free, "free takes the name of a lock"},
	"admit":   {func(int) bool { return true }, (*tool).admit, ""},
}

func exactly(want int) func(int) bool { return func(n int) bool { return n == want } }

// A tool is one run of the command.
type tool struct {
	flags
	args []string // of the command
	out  printer
	do   func(t *tool, ctx context.Context) error
}

// run is main without the process around it. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	t, err := parse(args, stderr)
	if errors.Is(err, errHelp) {
		return exitOK
	}
	if err == nil {
		t.out = printer{w: stdout, json: t.json}
		err = t.do(t, ctx)
		err = errors.Join(err, t.out.err)
	}
	if err != nil {
		for line := range strings.Lines(err.Error()) { // of several faults each has its own
			fmt.Fprintln(stderr, "quorumlock:", printable(strings.TrimSuffix(line, "\n")))
		}
	}
	return status(err)
}

// status is the exit status for an error.
func status(err error) int {
	for _, kind := range []struct {
		is     error
		status int
	}{
		{errUsage, exitUsage}, {redlock.ErrInvalid, exitUsage}, {redlock.ErrHeld, exitHeld},
		{redlock.ErrNoQuorum, exitNoQuorum}, {redlock.ErrLost, exitLost},
		{redlock.ErrNotHeld, exitNotHeld},
	} {
		if errors.Is(err, kind.is) {
			return kind.status
		}
	}
	if err != nil {
		return exitOther
	}
	return exitOK
}

// client is one that writes nothing by asking. Its MaxTTL is never told to a node.
func (t *tool) client() (*redlock.Client, error) {
	ttl := 4 * t.timeout // the least that allows the time-out
	return t.clientWith(redlock.Config{TTL: ttl, NodeTimeout: t.timeout})
}

func (t *tool) clientWith(cfg redlock.Config) (*redlock.Client, error) {
	cfg.Addrs, cfg.Prefix = t.addrs, t.prefix
	cfg.Logger = slog.New(slog.DiscardHandler) // all that it would say is printed
	made, err := door.NewLooker(cfg)
	if err != nil {
		return nil, err
	}
	return made.(*redlock.Client), nil
}

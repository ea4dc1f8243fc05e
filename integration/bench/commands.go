package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// fromClients are the commands in INFO commandstats that clients send and scripts do not call. The
// statistics count what scripts call (SET, HSET, PUBLISH, ...) under the same names as what clients
// send, so a peer that sends such a command itself says so, and none of ours or the peers' scripts
// calls what it says. CONFIG is left out: it is ours, to begin a count.
//
// INFO is a message of our clients, one behind each acquire in the same pipeline, by which the restart
// guard knows the node (docs/protocol.md): a lock alone and its unlock are three commands a node. Our
// script of admission calls it, too, but not while commands are counted: clients are made, and have
// taken a lock, before.
var fromClients = []string{"evalsha", "eval", "info", "ping", "hello", "subscribe", "unsubscribe",
	"pubsub", "client", "script"}

// A commandCount is how often each command was called at the nodes.
type commandCount map[string]int64

// parse adds what one node answered to INFO commandstats. Subcommands ("client|tracking") are
// counted for their command.
func (c commandCount) parse(info string) error {
	for line := range strings.Lines(info) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		name, isCommand := strings.CutPrefix(name, "cmdstat_")
		if !ok || !isCommand {
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(rest, "calls="), ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			return fmt.Errorf("INFO commandstats, line %q: %w", line, err)
		}
		name, _, _ = strings.Cut(name, "|")
		c[name] += n
	}
	return nil
}

// sent is how many of the calls clients sent, given the plain commands that they send besides.
func (c commandCount) sent(plain []string) int64 {
	var n int64
	for name, calls := range c {
		if slices.Contains(fromClients, name) || slices.Contains(plain, name) {
			n += calls
		}
	}
	return n
}

// asker sends one command to a node; a *redisproc.Node does.
type asker interface {
	Do(ctx context.Context, args ...any) (any, error)
}

// forgetCommands begins a count at the nodes.
func forgetCommands[N asker](ctx context.Context, nodes []N) error {
	var errs []error
	for _, n := range nodes {
		_, err := n.Do(ctx, "CONFIG", "RESETSTAT")
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// countCommands is what the nodes were asked since forgetCommands. The INFO that asks is counted by
// the node only after its answer.
func countCommands[N asker](ctx context.Context, nodes []N) (commandCount, error) {
	all := commandCount{}
	for _, n := range nodes {
		answer, err := n.Do(ctx, "INFO", "commandstats")
		if err != nil {
			return nil, err
		}
		info, ok := answer.(string)
		if !ok {
			return nil, fmt.Errorf("INFO commandstats answered %T, not text", answer)
		}
		if err := all.parse(info); err != nil {
			return nil, err
		}
	}
	return all, nil
}

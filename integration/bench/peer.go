package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A peer is one library, set up in one way.
type peer struct {
	name    string
	oneNode bool     // asks the first node only: no quorum, and that much less work
	skips   bool     // is made to skip what another holds, not to wait for it: no part of hand-offs
	passes  bool     // is part of hand-offs only
	redsync bool     // one of the ways of redsync, whose best the targets are about
	plain   []string // commands it sends that are no scripts (see fromClients)

	// open makes a client of its own, with connections of its own: what one process has.
	open func(ctx context.Context, addrs []string, dial dialer) (client, error)
}

// errNoDialer is of libraries that are measured without added delay only.
var errNoDialer = errors.New("there is no way to delay it here: measure it without delay")

// A client of a library takes locks, for any number of goroutines at once.
type client interface {
	lock(ctx context.Context, name string) (held, error) // waits for a holder until ctx ends
	try(ctx context.Context, name string) (held, error)  // asks once
	close() error
}

// A held lock is given back once.
type held interface {
	Unlock(ctx context.Context) error
}

const (
	oursOneName     = "quorumlock (one node)"
	rueidislockName = "rueidislock (one node)"
	gocronName      = "gocron-redis-lock (one node)"
)

// peers are all that are compared, ours first.
func peers() []peer {
	return []peer{
		{name: "quorumlock", open: openOurs},
		{name: "redsync", redsync: true, plain: []string{"set"}, open: openRedsync(false)},
		{name: "redsync fail-fast", redsync: true, plain: []string{"set"}, open: openRedsync(true)},
		{name: oursOneName, oneNode: true, passes: true, open: openOurs},
		{name: rueidislockName, oneNode: true, open: openRueidislock},
		{name: "redislock (one node)", oneNode: true, open: openRedislock},
		{name: gocronName, oneNode: true, skips: true, plain: []string{"set"}, open: openGocron},
	}
}

// peerNamed is the one of that name.
func peerNamed(name string) (*peer, error) {
	for _, p := range peers() {
		if p.name == name {
			return &p, nil
		}
	}
	return nil, fmt.Errorf("no such library: %q", name)
}

// passingPeers are those that wait for who holds a lock, and so pass it on.
func passingPeers() []peer {
	return slices.DeleteFunc(peers(), func(p peer) bool { return p.skips })
}

// waitingPeers are those whose waiting is measured alone.
func waitingPeers() []peer {
	return slices.DeleteFunc(peers(), func(p peer) bool { return p.skips || p.passes })
}

// quorumPeers are those that ask a majority of nodes.
func quorumPeers() []peer {
	return slices.DeleteFunc(peers(), func(p peer) bool { return p.oneNode })
}

// addrs are those of the nodes that the peer asks.
func (p *peer) addrs(all []string) []string {
	if p.oneNode {
		return all[:1]
	}
	return all
}

// key is a lock's name that no other library uses: redsync with fail-fast may leave keys behind at
// some nodes for as long as they live.
func (p *peer) key(parts ...any) string {
	name := p.name
	for _, part := range parts {
		name += fmt.Sprintf("/%v", part)
	}
	return name
}

// A dialer connects to a node, for redis.Options.Dialer; nil: without delay.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// dialAll makes go-redis clients for the nodes with that dialer, as a service would that knows
// what it wants of them: no silent repeats, deadlines of contexts kept, and as many connections as
// callers want, since over a slow network a connection is busy for longer.
func dialAll(addrs []string, dial dialer) []*redis.Client {
	clients := make([]*redis.Client, len(addrs))
	for i, addr := range addrs {
		options := &redis.Options{
			Addr: addr, Dialer: dial, PoolSize: delayedPool, MaxRetries: -1, ContextTimeoutEnabled: true,
			Protocol: 2, DisableIdentity: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}
		clients[i] = redis.NewClient(options)
	}
	return clients
}

// Where a dialer delays: the most connections to a node, and those that are opened beforehand, for
// an attempt and what is left of the one before it.
const delayedPool, delayedConns = 1024, 4

// connect opens connections beforehand, as those of a service that has run for a while are.
func connect(ctx context.Context, clients []*redis.Client, perNode int) error {
	errs := make([]error, len(clients))
	var wg sync.WaitGroup
	for i, client := range clients {
		wg.Go(func() {
			conns := make([]*redis.Conn, perNode)
			for k := range conns {
				conns[k] = client.Conn()
				errs[i] = errors.Join(errs[i], conns[k].Ping(ctx).Err())
			}
			for _, conn := range conns {
				errs[i] = errors.Join(errs[i], conn.Close())
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func closeAll(clients []*redis.Client) error {
	var errs []error
	for _, client := range clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

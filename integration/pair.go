package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// PairName is the name under which sentinels know a pair.
const PairName = "pair"

// pairTimeout is how long a pair and its sentinels may take to know each other: sentinels look
// every ten seconds.
const pairTimeout = time.Minute

// A Pair is a primary with one Redis replica and the sentinels that watch them: together they are
// one node of a quorum. All are containers. They share one network, the first sentinel's, in which
// each has a port of its own: so the addresses that sentinels tell each other stay over restarts.
// That sentinel is not to be stopped.
type Pair struct {
	Servers   [2]*Node // the primary, at first, and its replica
	Sentinels [3]*Node // two of them have to agree on a fail-over
	inside    map[string]*Node
}

const sentinelPort = 26379

// StartPair starts a pair whose sentinels know all of each other. The options are the servers'. On
// an error nothing is left.
func StartPair(ctx context.Context, opts ...Option) (*Pair, error) {
	image, err := findImage(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout+pairTimeout)
	defer cancel()
	p := &Pair{inside: map[string]*Node{}}
	if err := p.start(ctx, image, collect(opts)); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// PairForTest is StartPair as ForTest is Start.
func PairForTest(tb testing.TB, opts ...Option) *Pair {
	tb.Helper()
	p, err := StartPair(tb.Context(), opts...)
	need(tb, err)
	endWithTest(tb, &Cluster{Nodes: p.all()})
	return p
}

func (p *Pair) start(ctx context.Context, image string, s settings) error {
	var lent []int
	for i := range p.Sentinels {
		lent = append(lent, sentinelPort+i)
	}
	for i := range p.Servers {
		lent = append(lent, redisPort+i)
	}
	// Before the others, alone: it cannot agree with anybody that the primary is down.
	watch := p.sentinel(0)
	watch.lent = lent[1:]
	if err := p.add(ctx, image, &p.Sentinels[0], watch); err != nil {
		return err
	}
	s.lender = p.Sentinels[0]
	replica := s
	replica.port++
	replica.lines = append(replica.lines[:len(replica.lines):len(replica.lines)],
		fmt.Sprintf("replicaof 127.0.0.1 %d", redisPort))
	for i, of := range []settings{s, replica} {
		if err := p.add(ctx, image, &p.Servers[i], of); err != nil {
			return err
		}
	}
	if err := p.await(ctx, "the replica is in step", p.inStep); err != nil {
		return err
	}
	for i := 1; i < len(p.Sentinels); i++ {
		if err := p.add(ctx, image, &p.Sentinels[i], p.sentinel(i)); err != nil {
			return err
		}
	}
	return p.await(ctx, "sentinels know each other and the replica", p.watched)
}

// sentinel is the settings of number i.
func (p *Pair) sentinel(i int) settings {
	s := collect(nil)
	s.plain, s.port, s.args = false, sentinelPort+i, []string{"--sentinel"}
	if i > 0 {
		s.lender = p.Sentinels[0]
	}
	s.lines = []string{
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", PairName, redisPort),
		fmt.Sprintf("sentinel down-after-milliseconds %s 1000", PairName),
		fmt.Sprintf("sentinel failover-timeout %s 10000", PairName),
	}
	return s
}

func (p *Pair) add(ctx context.Context, image string, at **Node, s settings) (err error) {
	*at, err = startNode(ctx, image, s)
	if err == nil {
		p.inside[fmt.Sprintf("127.0.0.1:%d", s.port)] = *at
	}
	return err
}

// await asks again and again until it is so.
func (p *Pair) await(ctx context.Context, what string, so func(context.Context) error) error {
	var last error
	if err := poll(ctx, func() bool { last = so(ctx); return last == nil }); err != nil {
		return fmt.Errorf("integration: pair: not so: %s: %w", what, errors.Join(err, last))
	}
	return nil
}

// inStep reports whether one is the primary and the other its replica, with all of its data.
func (p *Pair) inStep(ctx context.Context) error {
	roles := ""
	for _, n := range p.Servers {
		info, err := n.Do(ctx, "INFO", "replication")
		if err != nil {
			return err
		}
		for _, word := range []string{"role:master", "role:slave", "master_link_status:up"} {
			if strings.Contains(info.(string), word) {
				roles += word + " "
			}
		}
	}
	switch strings.TrimSpace(roles) {
	case "role:master role:slave master_link_status:up",
		"role:slave master_link_status:up role:master":
		return nil
	}
	return fmt.Errorf("they say: %s", roles)
}

// watched reports whether a fail-over is possible, in the view of each sentinel.
func (p *Pair) watched(ctx context.Context) error {
	for i, n := range p.Sentinels {
		state, err := n.Do(ctx, "SENTINEL", "MASTER", PairName)
		if err != nil {
			return err
		}
		fields := fieldsOf(state)
		if fields["flags"] != "master" || fields["num-slaves"] != "1" ||
			fields["num-other-sentinels"] != "2" {
			return fmt.Errorf("sentinel %d sees flags %s, %s replicas, %s other sentinels", i,
				fields["flags"], fields["num-slaves"], fields["num-other-sentinels"])
		}
		replicas, err := n.Do(ctx, "SENTINEL", "REPLICAS", PairName)
		if err != nil {
			return err
		}
		list, _ := replicas.([]any)
		if len(list) != 1 || fieldsOf(list[0])["master-link-status"] != "ok" ||
			fieldsOf(list[0])["flags"] != "slave" {
			return fmt.Errorf("sentinel %d does not see the replica in step", i)
		}
	}
	return nil
}

// fieldsOf makes a map of an answer that names each field before its value.
func fieldsOf(answer any) map[string]string {
	list, _ := answer.([]any)
	fields := map[string]string{}
	for i := 1; i < len(list); i += 2 {
		fields[fmt.Sprint(list[i-1])] = fmt.Sprint(list[i])
	}
	return fields
}

// Primary is the server that this sentinel takes for the primary.
func (p *Pair) Primary(ctx context.Context, sentinel int) (*Node, error) {
	at, err := p.Sentinels[sentinel].Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", PairName)
	if err != nil {
		return nil, err
	}
	list, _ := at.([]any)
	if len(list) != 2 {
		return nil, fmt.Errorf("integration: pair: the primary is said to be at %v", at)
	}
	n := p.inside[net.JoinHostPort(fmt.Sprint(list[0]), fmt.Sprint(list[1]))]
	if n == nil {
		return nil, fmt.Errorf("integration: pair: nobody of it is at %v", list)
	}
	return n, nil
}

// SentinelAddrs are addresses for clients that dial with Dial.
func (p *Pair) SentinelAddrs() (addrs []string) {
	for i := range p.Sentinels {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", sentinelPort+i))
	}
	return addrs
}

// Dial is the Dialer of a client: what sentinels say are addresses inside the pair's network, and
// leads to their ways here.
func (p *Pair) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n := p.inside[addr]
	if n == nil {
		return nil, fmt.Errorf("integration: pair: nobody of it is at %s", addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, n.Addr())
}

func (p *Pair) all() (nodes []*Node) {
	for _, n := range append(p.Sentinels[:], p.Servers[:]...) {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Close removes the containers, whatever state they are in. It may be called twice.
func (p *Pair) Close() error { return onAll(p.all(), (*Node).close) }

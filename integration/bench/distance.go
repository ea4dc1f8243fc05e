package main

import (
	"fmt"
	"strings"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A distance is some nodes from afar: each behind a proxy that holds up all that passes, whoever sent
// it, unasked messages too.
type distance struct {
	proxies []*toxiproxy.Proxy
}

// newDistance puts half of the delay on each way to these addresses.
func newDistance(addrs []string, delay time.Duration) (*distance, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	d := &distance{}
	for i, addr := range addrs {
		p := toxiproxy.NewProxy(server, fmt.Sprintf("node %d", i), "127.0.0.1:0", addr)
		if err := p.Start(); err != nil {
			d.close()
			return nil, fmt.Errorf("a proxy before %s: %w", addr, err)
		}
		d.proxies = append(d.proxies, p)
		for _, way := range []string{"upstream", "downstream"} {
			text := fmt.Sprintf(`{"name": %q, "type": "latency", "stream": %q, "attributes": {"latency": %d}}`,
				way, way, (delay / 2).Milliseconds())
			if _, err := p.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
				d.close()
				return nil, fmt.Errorf("a delay before %s: %w", addr, err)
			}
		}
	}
	return d, nil
}

// addrs are where the nodes are reached from afar.
func (d *distance) addrs() (all []string) {
	for _, p := range d.proxies {
		all = append(all, p.Listen)
	}
	return all
}

func (d *distance) close() {
	for _, p := range d.proxies {
		p.Stop()
	}
}

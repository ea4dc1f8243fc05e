package integration

import (
	"context"
	"fmt"
	"strings"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A wire is a proxy before a node. Its address stays while the node's mapped port changes, and
// faults of the network happen on it. The directions are toxiproxy's: upstream is what clients
// send.
type wire struct {
	proxy *toxiproxy.Proxy
}

// nowhere refuses connections: nothing can listen on port 0.
const nowhere = "127.0.0.1:0"

func newWire(name string) (*wire, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, name, "127.0.0.1:0", nowhere)
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("integration: proxy: %w", err)
	}
	return &wire{proxy: p}, nil
}

func (w *wire) addr() string {
	w.proxy.Lock()
	defer w.proxy.Unlock()
	return w.proxy.Listen
}

// lead leads the wire to another place. Connections end, as they do when a server goes.
func (w *wire) lead(to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), faultTimeout)
	defer cancel()
	listen := w.addr()
	var last error
	// The proxy gives its port up for a moment; should a passing connection have it, wait for that.
	err := poll(ctx, func() bool {
		last = w.proxy.Update(&toxiproxy.Proxy{Listen: listen, Upstream: to, Enabled: true})
		return last == nil
	})
	if err != nil {
		return fmt.Errorf("proxy: %w", last)
	}
	return nil
}

func (w *wire) close() { w.proxy.Stop() }

// add adds a fault, under a name by which it can be taken away again.
func (w *wire) add(name, kind, stream, attributes string) error {
	_, err := w.proxy.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(
		`{"name": %q, "type": %q, "stream": %q, "attributes": {%s}}`, name, kind, stream, attributes)))
	return err
}

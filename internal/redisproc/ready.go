package redisproc

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// How long a node may take to answer, to come back, to follow its primary or to end. They bound
// a test that would otherwise hang; on a loaded machine a start takes some tens of milliseconds.
const (
	startTimeout = 20 * time.Second
	syncTimeout  = 20 * time.Second
	stopTimeout  = 20 * time.Second // a primary waits ten seconds for lagging replicas
	pollInterval = 5 * time.Millisecond
)

// poll asks until it is answered with true or an error, or ctx ends.
func poll(ctx context.Context, ask func() (bool, error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if done, err := ask(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitReady waits until this very process answers PING; LOADING is not an answer.
func (n *Node) awaitReady(ctx context.Context, p *process) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process or with us; somebody else on the port may never answer
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	var last error
	err := poll(ctx, func() (bool, error) {
		last = n.isReady(ctx, p.pid())
		return last == nil, nil
	})
	if err != nil && !p.running() {
		return fmt.Errorf("redis-server ended: %v", p.cmd.ProcessState)
	}
	if err != nil && last != nil {
		err = fmt.Errorf("%w (last answer: %w)", err, last)
	}
	return err
}

func (n *Node) isReady(ctx context.Context, pid int) error {
	info, err := n.info(ctx, "server")
	if err != nil {
		return err
	}
	if got := info["process_id"]; got != strconv.Itoa(pid) {
		return fmt.Errorf("process %s answers there, not ours", got)
	}
	_, err = n.Do(ctx, "PING")
	return err
}

// info returns the fields of one section of INFO.
func (n *Node) info(ctx context.Context, section string) (map[string]string, error) {
	answer, err := n.Do(ctx, "INFO", section)
	if err != nil {
		return nil, err
	}
	text, ok := answer.(string)
	if !ok {
		return nil, fmt.Errorf("INFO %s is a %T", section, answer)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields, nil
}

package quorum

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A redisListener keeps one subscription connection to one node. One goroutine sends what is to be
// subscribed, because go-redis dials there; go-redis' own goroutines read, reconnect and
// subscribe again.
type redisListener struct {
	node  *RedisNode
	heard func(Heard)

	mu      sync.Mutex
	changes map[string]bool // channel: subscribe (true) or unsubscribe, not sent yet
	wake    chan struct{}
	closed  chan struct{}
	once    sync.Once
}

func newRedisListener(node *RedisNode, heard func(Heard)) *redisListener {
	l := &redisListener{node: node, heard: heard, changes: make(map[string]bool),
		wake: make(chan struct{}, 1), closed: make(chan struct{})}
	go l.run()
	return l
}

func (l *redisListener) Subscribe(channel string)   { l.change(channel, true) }
func (l *redisListener) Unsubscribe(channel string) { l.change(channel, false) }

func (l *redisListener) change(channel string, subscribe bool) {
	l.mu.Lock()
	l.changes[channel] = subscribe
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close ends both goroutines.
func (l *redisListener) Close() { l.once.Do(func() { close(l.closed) }) }

// run sends changes until the listener is closed.
func (l *redisListener) run() {
	defer func() {
		// A user's client may panic in its hooks; without the subscription waiting is slower, no
		// more than that.
		_ = recover()
	}()
	sub := l.node.client.Subscribe(context.Background())
	defer sub.Close()
	reading := false
	for {
		select {
		case <-l.wake:
		case <-l.closed:
			return
		}
		add, remove := l.takeChanges()
		ctx, cancel := context.WithTimeout(context.Background(), l.node.timeout)
		// Errors need no answer: go-redis remembers the channels and subscribes when it has
		// reconnected, and whoever waits has a slow poll besides.
		if len(add) > 0 {
			_ = sub.Subscribe(ctx, add...)
			if !reading {
				reading = true
				go l.read(sub)
			}
		}
		if len(remove) > 0 {
			_ = sub.Unsubscribe(ctx, remove...)
		}
		cancel()
	}
}

func (l *redisListener) takeChanges() (add, remove []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for channel, subscribe := range l.changes {
		if subscribe {
			add = append(add, channel)
		} else {
			remove = append(remove, channel)
		}
	}
	clear(l.changes)
	return add, remove
}

// read passes on what arrives. It ends when the subscription is closed.
func (l *redisListener) read(sub *redis.PubSub) {
	for message := range sub.ChannelWithSubscriptions(
		redis.WithChannelHealthCheckInterval(3*time.Second),
		redis.WithChannelSize(1024),
	) {
		switch message := message.(type) {
		case *redis.Subscription:
			if message.Kind == "subscribe" {
				l.heard(Heard{Kind: Subscribed, Channel: message.Channel})
			}
		case *redis.Message:
			l.heard(Heard{Kind: Published, Channel: message.Channel, Payload: message.Payload})
		}
	}
}

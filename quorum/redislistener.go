package quorum

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A redisListener keeps one subscription connection to one node. One goroutine sends what is to be
// subscribed, because go-redis dials there, and a PING now and then, by which a dead connection is
// found; another one reads. go-redis could read, too, by goroutines of its own; but what it panics
// at there, such as a message with numbers in the place of texts, would end the process.
type redisListener struct {
	node  *RedisNode
	heard func(Heard)

	mu      sync.Mutex
	changes map[string]bool // channel: subscribe (true) or unsubscribe, not sent yet
	counts  []string        // channels whose listeners are to be counted
	leaving map[string]int  // by channel: unsubscriptions that the node has not confirmed
	wake    chan struct{}
	closed  chan struct{}
	once    sync.Once
}

func newRedisListener(node *RedisNode, heard func(Heard)) *redisListener {
	l := &redisListener{node: node, heard: heard, changes: make(map[string]bool),
		leaving: make(map[string]int), wake: make(chan struct{}, 1), closed: make(chan struct{})}
	go l.run()
	return l
}

func (l *redisListener) Subscribe(channel string)   { l.change(channel, true) }
func (l *redisListener) Unsubscribe(channel string) { l.change(channel, false) }

func (l *redisListener) change(channel string, subscribe bool) {
	l.mu.Lock()
	l.changes[channel] = subscribe
	l.mu.Unlock()
	l.signal()
}

func (l *redisListener) Count(channel string) {
	l.mu.Lock()
	l.counts = append(l.counts, channel)
	l.mu.Unlock()
	l.signal()
}

func (l *redisListener) signal() {
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
	check := time.NewTicker(listenerCheck)
	defer check.Stop()
	for {
		ping := false
		select {
		case <-l.wake:
		case <-check.C:
			ping = reading
		case <-l.closed:
			return
		}
		add, remove, count := l.takeChanges()
		ctx, cancel := context.WithTimeout(context.Background(), l.node.timeout)
		if ping {
			_ = sub.Ping(ctx)
		}
		// First, so that when the subscription is confirmed nothing of the others is heard any more.
		if len(remove) > 0 {
			_ = sub.Unsubscribe(ctx, remove...)
		}
		// Errors need no answer: go-redis remembers the channels and subscribes when it has
		// reconnected, and whoever waits has a slow poll besides.
		if len(add) > 0 {
			_ = sub.Subscribe(ctx, add...)
			if !reading {
				reading = true
				go l.read(sub)
			}
		}
		if len(count) > 0 {
			l.count(ctx, count)
		}
		cancel()
	}
}

// count asks over one of the client's other connections. An error is no answer: the user may not
// have the right, and the number is a hint.
func (l *redisListener) count(ctx context.Context, channels []string) {
	counts, err := l.node.client.PubSubNumSub(ctx, channels...).Result()
	if err != nil {
		return
	}
	for channel, n := range counts {
		l.heard(Heard{Kind: Counted, Channel: channel, Count: int(min(n, math.MaxInt32))})
	}
}

func (l *redisListener) takeChanges() (add, remove, count []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count, l.counts = l.counts, nil
	for channel, subscribe := range l.changes {
		if subscribe {
			add = append(add, channel)
		} else {
			remove = append(remove, channel)
			l.leaving[channel]++
		}
	}
	clear(l.changes)
	return add, remove, count
}

// listenerCheck is how often a subscription is pinged: a waiter asks by itself about as often.
// listenerPause is how long it rests after an error, so that a node that answers nonsense at once
// does not keep us busy.
const (
	listenerCheck = 15 * time.Second
	listenerPause = 100 * time.Millisecond
)

// read passes on what arrives. It ends when the subscription is closed.
func (l *redisListener) read(sub *redis.PubSub) {
	for failed := false; ; {
		message, err := receive(sub)
		switch message := message.(type) {
		case *redis.Subscription:
			if l.isLast(message) {
				l.heard(Heard{Kind: Subscribed, Channel: message.Channel})
			}
		case *redis.Message:
			l.heard(Heard{Kind: Published, Channel: message.Channel, Payload: message.Payload})
		}
		if err != nil {
			l.mu.Lock()
			clear(l.leaving)
			l.mu.Unlock()
		}
		if err != nil && failed { // the first time go-redis connects anew, mostly at once
			select {
			case <-time.After(listenerPause):
			case <-l.closed:
			}
		}
		if failed = err != nil; errors.Is(err, redis.ErrClosed) {
			return
		}
	}
}

// isLast reports whether it confirms a subscription that no unsubscription is on its way behind:
// what is published between that and the next subscription is not heard.
func (l *redisListener) isLast(message *redis.Subscription) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.leaving[message.Channel]
	if message.Kind == "subscribe" {
		return left == 0
	}
	if left--; left <= 0 {
		delete(l.leaving, message.Channel)
	} else {
		l.leaving[message.Channel] = left
	}
	return false
}

// receive waits for one message, and survives one that go-redis panics at.
func receive(sub *redis.PubSub) (message any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the node's client panicked: %v", p)
		}
	}()
	return sub.Receive(context.Background())
}

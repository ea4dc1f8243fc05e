package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// A contender takes one name over and over again through one client, holds it for a while, up to
// several TTLs so that it is renewed, and frees it.
type contender struct {
	client *redlock.Client
	ledger *ledger
	name   string
	ttl    time.Duration
	random *rand.Rand
}

func (k *contender) compete(ctx context.Context) {
	for ctx.Err() == nil {
		lock, err := k.take(ctx)
		if err != nil {
			if errors.Is(err, redlock.ErrNoQuorum) && ctx.Err() == nil {
				k.ledger.noQuorum()
			}
			pause(ctx, upTo(k.random, k.ttl/10))
			continue
		}
		k.hold(ctx, lock)
		pause(ctx, upTo(k.random, k.ttl/40))
	}
}

// take waits for the name, or asks once: a waiting contender learns of a free name by its being
// freed, and only one that asks at a bad moment finds nodes that have forgotten.
func (k *contender) take(ctx context.Context) (*redlock.Lock, error) {
	if k.random.IntN(3) > 0 {
		return k.client.TryLock(ctx, k.name)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*k.ttl)
	defer cancel()
	return k.client.Lock(ctx, k.name)
}

// hold acts under the lock, which here is to look at it every millisecond, until it is lost or has
// been held for long enough.
func (k *contender) hold(ctx context.Context, lock *redlock.Lock) {
	h := k.ledger.enter(k.name, lock.Token(), lock)
	span := upTo(k.random, 3*k.ttl)
	for began := time.Now(); time.Since(began) < span && ctx.Err() == nil; {
		if !k.ledger.look(h) {
			k.ledger.leave(h, true)
			_ = lock.Unlock(context.Background()) // as a deferred one does; says that it was lost
			return
		}
		time.Sleep(time.Millisecond)
	}
	k.ledger.leave(h, false)
	_ = lock.Unlock(context.Background()) // nodes may be down: the rest is freed in the background
}

package main

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// viaRueidislock is rueidislock with its defaults: a majority of three keys that all lie on one
// node, so a crash of that node loses its locks. It learns of freed keys by client-side caching.
type viaRueidislock struct {
	locker rueidislock.Locker
}

func openRueidislock(_ context.Context, addrs []string, dial dialer) (client, error) {
	if dial != nil {
		return nil, errNoDialer
	}
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: addrs[:1], ForceSingleClient: true},
	})
	if err != nil {
		return nil, err
	}
	return &viaRueidislock{locker: locker}, nil
}

func (r *viaRueidislock) lock(ctx context.Context, name string) (held, error) {
	_, free, err := r.locker.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return rueidislockHeld(free), nil
}

func (r *viaRueidislock) try(ctx context.Context, name string) (held, error) {
	_, free, err := r.locker.TryWithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return rueidislockHeld(free), nil
}

func (r *viaRueidislock) close() error {
	r.locker.Close()
	return nil
}

// rueidislockHeld frees by ending the lock's context; it returns when the keys are deleted, and has
// no error to tell.
type rueidislockHeld context.CancelFunc

func (h rueidislockHeld) Unlock(context.Context) error {
	h()
	return nil
}

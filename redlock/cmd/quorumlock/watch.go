package main

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/quorumlock/redlock"
)

// A sight is a lock as it was seen at one moment.
type sight struct {
	at     time.Time
	status redlock.Status
	err    error
}

// renewedBy is how much more must remain of a lock than at the last look to count as renewed. What
// it lost since is not added: how long looks take on a busy machine would look like a renewal.
const renewedBy = 50 * time.Millisecond

// event says what has changed since an earlier sight; "": nothing worth a line.
func (s *sight) event(before *sight) string {
	switch {
	case s.err != nil && before != nil && before.err != nil:
		return ""
	case s.err != nil:
		return "no quorum"
	case before == nil || before.err != nil:
		return "is"
	case s.status.Holder != before.status.Holder && s.status.Holder == "":
		return "free"
	case s.status.Holder != before.status.Holder || s.status.Holder != "" &&
		s.status.Token != before.status.Token:
		return "taken"
	case s.status.Votes != before.status.Votes:
		return "votes"
	case s.status.Holder != "" && s.status.Remaining-before.status.Remaining > renewedBy:
		return "renewed"
	}
	return ""
}

// watch prints a line for each change until ctx ends or -for is over.
func (t *tool) watch(ctx context.Context) error {
	c, err := t.client()
	if err != nil {
		return err
	}
	defer c.Close()
	if t.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.duration)
		defer cancel()
	}
	ticker := time.NewTicker(t.every)
	defer ticker.Stop()
	for before := (*sight)(nil); ; {
		now := &sight{}
		now.status, now.err = c.Inspect(ctx, t.args[0])
		now.at = time.Now()
		switch {
		case ctx.Err() != nil:
			return nil
		case status(now.err) == exitUsage:
			return now.err
		}
		if event := now.event(before); event != "" {
			t.show(now, event)
		}
		if t.out.err != nil {
			return nil // run tells
		}
		before = now
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// show prints one change.
func (t *tool) show(s *sight, event string) {
	at := s.at.UTC().Format("2006-01-02T15:04:05.000Z")
	line := statusLineOf(s.status, s.err)
	line.Time, line.Event = at, event
	t.out.object(line)
	t.out.text("%s  %-9s  %s\n", at, event, describe(s.status, s.err))
	if s.err != nil {
		t.out.text("%s  %-9s  %s\n", at, "", printable(fmt.Sprint(s.err)))
	}
}

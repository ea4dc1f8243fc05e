package nodetest

import (
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// forgetClaims are checked before all others, one after another: a batch of somebody else may well
// notice when the script cache is emptied twice within one answer.
var forgetClaims = []claim{
	{"a forgotten script goes unnoticed", forgetsScripts},
	{"scripts are forgotten at any time", forgetsAlways},
}

// forgetsScripts wants each script to be answered when the node does not have it: alone, twice in
// one batch, and beside others.
func forgetsScripts(a *asker) {
	if a.ForgetScripts == nil {
		return
	}
	w := a.wish("ql1:me/1")
	for _, step := range []struct {
		letters  string
		commands []*quorum.Command
	}{
		{"+", []*quorum.Command{w.Command()}},
		{"==", []*quorum.Command{w.Command(), w.Command()}},
		{"++=", []*quorum.Command{Extend(a.keys, w.Token, time.Minute, week),
			Raise(a.keys, w.Token, w.Proposed, week), w.Command()}},
		{"+0", []*quorum.Command{Release(a.keys, w.Token, 0), Release(a.keys, w.Token, 0)}},
	} {
		a.ForgetScripts()
		batch := &quorum.Batch{WantReplication: true}
		for _, c := range step.commands {
			batch.Calls = append(batch.Calls, quorum.Call{Command: c})
		}
		a.execBatch(batch)
		a.wantLetters(batch, step.letters)
		a.wantReplication(batch)
	}
	a.wantHolder("")
}

// forgetsAlways forgets between messages and while they are answered. A message of its own is never
// refused for that; in a batch, forgetting twice in a row may cost a call its answer.
func forgetsAlways(a *asker) {
	if a.ForgetScripts == nil {
		return
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				a.ForgetScripts()
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	for i := range 100 {
		a := a.named(digits(uint64(i)))
		w := a.wish("ql1:me/1")
		a.acquire(w, script.Done)
		a.extend(w.Token, time.Minute, week, script.Done)
		a.release(w.Token, script.Done)
	}
}

package nodetest

import (
	"fmt"
	"runtime"
	"time"

	"github.com/quorumlock/quorumlock/internal/script"
	"github.com/quorumlock/quorumlock/quorum"
)

// An ear collects what a listener is told.
type ear struct {
	*asker
	quorum.Listener
	heard chan quorum.Heard
}

func (a *asker) listen() *ear {
	e := &ear{asker: a, heard: make(chan quorum.Heard, 64)}
	e.Listener = a.Node.Listen(func(h quorum.Heard) { e.heard <- h })
	a.Cleanup(e.Close)
	return e
}

// wants wants this to be what is heard next.
func (e *ear) wants(want quorum.Heard) {
	e.Helper()
	select {
	case got := <-e.heard:
		if got != want {
			e.Fatalf("heard: got %+v, want %+v", got, want)
		}
	case <-time.After(patience):
		e.Fatalf("heard: nothing, want %+v", want)
	}
}

// subscribes subscribes and waits until that is confirmed.
func (e *ear) subscribes(channel string) {
	e.Helper()
	e.Subscribe(channel)
	e.wants(quorum.Heard{Kind: quorum.Subscribed, Channel: channel})
}

func published(keys Keys, token string) quorum.Heard {
	return quorum.Heard{Kind: quorum.Published, Channel: keys.Channel, Payload: token}
}

// frees takes the lock and gives it back.
func (a *asker) frees(token string) {
	a.Helper()
	a.acquire(a.wish(token), script.Done)
	a.release(token, script.Done)
}

var listenerClaims = []claim{
	{"a release is published", func(a *asker) {
		e := a.listen()
		e.subscribes(a.keys.Channel)
		a.frees("ql1:me/1")
		e.wants(published(a.keys, "ql1:me/1"))
	}},
	{"only a release that frees is published", func(a *asker) {
		e := a.listen()
		e.subscribes(a.keys.Channel)
		a.release("ql1:me/1", script.Nobody)
		a.Data.Set(a.keys.Lock, "stranger", time.Minute)
		a.release("ql1:me/2", script.Rival)
		a.release("stranger", script.Done)
		a.release("stranger", script.Nobody)
		a.frees("ql1:me/3")
		e.wants(published(a.keys, "stranger"))
		e.wants(published(a.keys, "ql1:me/3"))
	}},
	{"a release that leaves the key for a while is published", func(a *asker) {
		e := a.listen()
		e.subscribes(a.keys.Channel)
		a.acquire(a.wish("ql1:me/1"), script.Done)
		a.keeps("ql1:me/1", time.Second)
		e.wants(published(a.keys, "ql1:me/1"))
	}},
	{"everybody who listens hears it, each on its channels", func(a *asker) {
		other := a.named("other")
		first, second := a.listen(), a.listen()
		first.subscribes(a.keys.Channel)
		second.subscribes(other.keys.Channel)
		second.subscribes(a.keys.Channel)
		other.frees("ql1:me/1")
		a.frees("ql1:me/2")
		first.wants(published(a.keys, "ql1:me/2"))
		second.wants(published(other.keys, "ql1:me/1"))
		second.wants(published(a.keys, "ql1:me/2"))
	}},
	{"what is no longer subscribed is not heard", func(a *asker) {
		other := a.named("other")
		e := a.listen()
		e.subscribes(a.keys.Channel)
		e.Unsubscribe(a.keys.Channel)
		e.subscribes(other.keys.Channel)
		a.frees("ql1:me/1")
		other.frees("ql1:me/2")
		e.wants(published(other.keys, "ql1:me/2"))
	}},
	{"what was unsubscribed can be subscribed again", func(a *asker) {
		e := a.listen()
		e.subscribes(a.keys.Channel)
		e.Unsubscribe(a.keys.Channel)
		e.subscribes(a.keys.Channel)
		a.frees("ql1:me/1")
		e.wants(published(a.keys, "ql1:me/1"))
	}},
	{"channels and tokens of any bytes are heard", func(a *asker) {
		for _, name := range []string{"a\x00b", "\xff\xfe", "{a}", "täglich ✓", "a\r\nb"} {
			a := a.named(name)
			e := a.listen()
			e.subscribes(a.keys.Channel)
			a.frees("ql1:h\xffo\x00st/1 2")
			e.wants(published(a.keys, "ql1:h\xffo\x00st/1 2"))
		}
	}},
	{"a node tells how many listen to a channel", func(a *asker) {
		first, second := a.listen(), a.listen()
		for i, e := range []*ear{first, second} {
			e.subscribes(a.keys.Channel)
			first.Count(a.keys.Channel)
			first.wants(quorum.Heard{Kind: quorum.Counted, Channel: a.keys.Channel, Count: i + 1})
		}
	}},
	{"a subscription behind an unsubscription is confirmed once it stands", func(a *asker) {
		e := a.listen()
		e.subscribes(a.keys.Channel)
		for i := range 50 {
			e.Unsubscribe(a.keys.Channel)
			if i%2 == 0 { // so that it is on its way, or not yet
				runtime.Gosched()
			}
			e.subscribes(a.keys.Channel)
			token := fmt.Sprint("ql1:me/", i)
			a.frees(token)
			e.wants(published(a.keys, token))
		}
	}},
	{"a listener may be closed twice, and at any time", func(a *asker) {
		e := a.listen()
		e.Close()
		e.Subscribe(a.keys.Channel)
		e.Unsubscribe(a.keys.Channel)
		e.Close()
	}},
}

package fakenode_test

import (
	"testing"
	"time"
)

func TestKeysEndByTheNodesClock(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.wants("+", 0, acquire(mine))
		pass(4 * time.Second)
		b.StepClock(5 * time.Second)
		if left := b.TTL(keys.Lock); left != time.Second {
			b.Errorf("TTL: got %v, want 1 s", left)
		}
		b.StepClock(-5 * time.Second)
		if left := b.TTL(keys.Lock); left != 6*time.Second {
			b.Errorf("TTL: got %v, want 6 s", left)
		}
		pass(6 * time.Second)
		b.wantHolder(mine) // as in Redis: a key is gone after its last millisecond
		pass(time.Millisecond)
		b.wantHolder("")
	})
}

func TestAClockMayDrift(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.Drift(0.5)
		pass(10 * time.Second)
		b.Drift(-0.5)
		pass(4 * time.Second)
		b.Drift(0)
		pass(time.Second)
		if got, want := b.Now(), time.Now().Add(3*time.Second); !got.Equal(want) {
			b.Errorf("clock: got %v, want %v", got, want)
		}
	})
}

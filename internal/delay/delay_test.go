package delay

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestAMessageIsHeldUpOnceEachWay sends one of two pieces and gets one of two pieces back.
func TestAMessageIsHeldUpOnceEachWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		n := New(10*time.Millisecond, 10*time.Millisecond, 1)
		c := &slowConn{Conn: near, network: n}
		go func() {
			for range 2 {
				piece := make([]byte, 1)
				for range 2 {
					if _, err := io.ReadFull(far, piece); err != nil {
						return
					}
				}
				for range 2 {
					if _, err := far.Write(piece); err != nil {
						return
					}
				}
			}
		}()
		began := time.Now()
		for range 2 {
			for range 2 {
				if _, err := c.Write([]byte{1}); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if _, err := c.Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, want := time.Since(began), 40*time.Millisecond; got != want {
			t.Errorf("two messages and their answers took %v, want %v", got, want)
		}
	})
}

func TestDelaysLieBetweenTheirBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := New(time.Millisecond, 3*time.Millisecond, 1)
		seen := map[time.Duration]bool{}
		for range 50 {
			began := time.Now()
			n.pass()
			took := time.Since(began)
			if took < time.Millisecond || took > 3*time.Millisecond {
				t.Fatalf("%v, want 1 to 3 ms", took)
			}
			seen[took] = true
		}
		if len(seen) < 10 {
			t.Errorf("only %d different delays of 50", len(seen))
		}
	})
}

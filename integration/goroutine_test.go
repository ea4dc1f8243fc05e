package integration

import (
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// Goroutines of one test, among all that run in this process: they inherit a label.

// goroutines are those that a test starts from now on, and its own.
type goroutines struct {
	*rig
	label string
}

func (r *rig) goroutines() *goroutines {
	pprof.SetGoroutineLabels(pprof.WithLabels(r.Context(), pprof.Labels("test", r.Name())))
	return &goroutines{rig: r, label: fmt.Sprintf("%q:%q", "test", r.Name())}
}

// stacks are where they are: "3 @ 0x…", labels, frames.
func (g *goroutines) stacks() (own []string) {
	var profile strings.Builder
	g.must(pprof.Lookup("goroutine").WriteTo(&profile, 1))
	_, all, _ := strings.Cut(profile.String(), "\n")
	for stack := range strings.SplitSeq(all, "\n\n") {
		// Connections to the container engine stay for the next who asks it; the product has no HTTP.
		if strings.Contains(stack, g.label) && !strings.Contains(stack, "net/http.(*persistConn)") {
			own = append(own, stack)
		}
	}
	return own
}

func (g *goroutines) count() (count int) {
	for _, stack := range g.stacks() {
		n := 0
		_, err := fmt.Sscan(stack, &n)
		g.must(err)
		count += n
	}
	return count
}

// fallTo wants no more of them than so many, soon.
func (g *goroutines) fallTo(most int) {
	g.Helper()
	if !g.becomes(20*time.Second, func() bool { return g.count() <= most }) {
		g.Errorf("%d goroutines, want %d:\n%s", g.count(), most, strings.Join(g.stacks(), "\n\n"))
	}
}

func TestGoroutinesOfATestAreCounted(t *testing.T) {
	t.Parallel()
	g := (&rig{T: t}).goroutines()
	end := make(chan struct{})
	for range 3 {
		go func() {
			go func() { <-end }()
			<-end
		}()
	}
	if !g.becomes(10*time.Second, func() bool { return g.count() == 7 }) {
		t.Errorf("got %d, want the test's own and 6", g.count())
	}
	close(end)
	g.fallTo(1)
}

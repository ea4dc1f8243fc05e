package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorumlock/internal/embedded"
)

// A stage is what runs, and what it has reported.
type stage struct {
	nodes embedded.Nodes // nil: the user's own
	addrs []string

	mu       sync.Mutex // guards below
	up       []bool     // by node
	replicas []*replica // in the order of their start
	ready    int
	records  []entry
	faults   []fault
	log      []string // what the view tells: newest last
	omitted  []string // trouble that there should have been
	from     time.Time
	until    time.Time
}

// A replica is one process, from its start to its end.
type replica struct {
	name    string
	cmd     *exec.Cmd
	in      io.Closer // closed: the replica ends
	skew    time.Duration
	state   string // "starting", "runs", "frozen", "ends", "killed", "gone"
	runs    int
	gone    chan struct{}
	running map[string]int64 // by job: the tick whose run has begun and not ended
}

// An entry is a record with who wrote it and when it came.
type entry struct {
	record
	replica string
	came    time.Time
}

// A fault is something that was done to a replica or a node, while it lasted.
type fault struct {
	what     string // "kill", "freeze", "redeploy", "node"
	who      string
	from, to time.Time // to is zero while it lasts
}

func newStage(opts options) (*stage, error) {
	nodes, addrs, err := startNodes(opts)
	if err != nil {
		return nil, err
	}
	s := &stage{nodes: nodes, addrs: addrs, up: make([]bool, len(addrs))}
	for i := range s.up {
		s.up[i] = true
	}
	return s, nil
}

// start starts a replica process: this program again.
func (s *stage) start(name string, skew time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, replicaMode, "-name", name, "-skew", skew.String(),
		"-addrs", joinComma(s.addrs))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = childAttr()
	r := &replica{name: name, cmd: cmd, in: in, skew: skew, state: "starting",
		gone: make(chan struct{}), running: make(map[string]int64)}
	started := make(chan error)
	go s.serve(r, out, started)
	return <-started
}

// serve starts the replica, tells so, and takes in what it writes until it is gone.
func (s *stage) serve(r *replica, out io.Reader, started chan<- error) {
	// Linux sends the parent's death signal when the thread that forked ends, not when the program
	// does: this thread stays with the replica.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := r.cmd.Start(); err != nil {
		started <- fmt.Errorf("replica %s: %w", r.name, err)
		return
	}
	s.mu.Lock()
	s.replicas = append(s.replicas, r)
	s.mu.Unlock()
	s.say("%s starts (pid %d)%s", r.name, r.cmd.Process.Pid, skewWords(r.skew))
	started <- nil
	s.read(r, out)
}

func skewWords(skew time.Duration) string {
	if skew == 0 {
		return ""
	}
	return fmt.Sprintf(", clock %v ahead", skew)
}

// read takes in what a replica writes, until it is gone.
func (s *stage) read(r *replica, out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var rec record
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			s.say("%s wrote nonsense: %v", r.name, err)
			continue
		}
		s.take(r, rec)
	}
	_ = r.cmd.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.state != "killed" {
		r.state = "gone"
	}
	close(r.gone)
}

func (s *stage) take(r *replica, rec record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, entry{record: rec, replica: r.name, came: time.Now()})
	switch rec.Kind {
	case "ready":
		r.state = "runs"
		s.ready++
	case "run":
		r.runs++
		r.running[rec.Job] = rec.At
	case "done":
		delete(r.running, rec.Job)
	}
}

// awaitReady waits until that many replicas have begun to run jobs.
func (s *stage) awaitReady(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s.mu.Lock()
		ready := s.ready
		died := slices.ContainsFunc(s.replicas, func(r *replica) bool { return r.state == "gone" })
		s.mu.Unlock()
		switch {
		case ready >= count:
			return nil
		case died && ctx.Err() == nil:
			return fmt.Errorf("a replica ended before it was ready")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d replicas are ready: %w", ready, count, ctx.Err())
		}
	}
}

// say adds a line to what the view tells.
func (s *stage) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, time.Now().Format("15:04:05.0 ")+fmt.Sprintf(format, args...))
}

// omit says that some trouble was not made, and why; the table at the end repeats it.
func (s *stage) omit(format string, args ...any) {
	s.say(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.omitted = append(s.omitted, fmt.Sprintf(format, args...))
}

// count says which ticks are counted.
func (s *stage) count(from, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.until = from, until
}

// begin records a fault; the function that it returns ends it.
func (s *stage) begin(what, who string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.faults)
	s.faults = append(s.faults, fault{what: what, who: who, from: time.Now()})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults[i].to = time.Now()
	}
}

// living are the replicas that run and are not frozen.
func (s *stage) living() (living []*replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replicas {
		if r.state == "runs" {
			living = append(living, r)
		}
	}
	return living
}

// runningNow is a replica in the middle of a run of the job, or of any if job is "".
func (s *stage) runningNow(job string) (in *replica, of string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.replicas {
		for _, busy := range sortedKeys(r.running) {
			if r.state == "runs" && (job == "" || job == busy) {
				return r, busy
			}
		}
	}
	return nil, ""
}

func (s *stage) setState(r *replica, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.state = state
}

// setNode stops a node or starts it again with its data.
func (s *stage) setNode(i int, up bool) error {
	var err error
	if up {
		err = s.nodes[i].Restart(false)
	} else {
		err = s.nodes[i].Stop()
	}
	s.mu.Lock()
	s.up[i] = up
	s.mu.Unlock()
	return err
}

// shutdown lets all replicas end in order.
func (s *stage) shutdown() {
	s.mu.Lock()
	all := slices.Clone(s.replicas)
	s.mu.Unlock()
	for _, r := range all {
		_ = r.in.Close()
	}
	s.await(all, 6*time.Second)
}

// await waits until these replicas are gone.
func (s *stage) await(all []*replica, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for _, r := range all {
		select {
		case <-r.gone:
		case <-timer.C:
			return
		}
	}
}

// close ends whatever still runs.
func (s *stage) close() {
	s.mu.Lock()
	all := slices.Clone(s.replicas)
	s.mu.Unlock()
	for _, r := range all {
		select {
		case <-r.gone:
		default:
			_ = r.cmd.Process.Kill()
		}
	}
	s.await(all, 5*time.Second)
	if s.nodes != nil {
		_ = s.nodes.Close()
	}
}

// verdict judges what was recorded.
func (s *stage) verdict() verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := judge(s.from, s.until, s.records, s.faults)
	v.omitted = s.omitted
	return v
}

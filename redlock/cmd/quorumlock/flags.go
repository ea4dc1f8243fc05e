package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

var (
	errUsage = errors.New("usage")
	errHelp  = flag.ErrHelp
)

// addrsVariable is the environment's name for -addrs: arguments are seen by all users of a machine.
const addrsVariable = "QUORUMLOCK_ADDRS"

type flags struct {
	addrs    []string
	prefix   string
	timeout  time.Duration
	maxTTL   time.Duration
	json     bool
	yes      bool
	hold     string
	duration time.Duration
	every    time.Duration
}

// set are the flags. No default shows what the environment says: there may be passwords in it.
func (f *flags) set() *flag.FlagSet {
	set := flag.NewFlagSet("quorumlock", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Func("addrs", "the nodes, separated by commas, as in Config.Addrs\n(default: "+
		addrsVariable+", the place for passwords)", func(text string) error {
		f.addrs = splitAddrs(text)
		return nil
	})
	set.StringVar(&f.prefix, "prefix", "", "Config.Prefix of those who use the nodes")
	set.DurationVar(&f.timeout, "timeout", time.Second, "how long one node's answer may take")
	set.BoolVar(&f.json, "json", false, "print one JSON object per line; durations in ms")
	set.DurationVar(&f.maxTTL, "max-ttl", 0, "admit: the largest MaxTTL of all who use the nodes;"+
		" also lowers a wrong one\n(default: the largest that the nodes have)")
	set.BoolVar(&f.yes, "yes", false, "free: do it")
	set.StringVar(&f.hold, "hold", "", "free: only if this is still the hold, as free without"+
		" -yes shows it")
	set.DurationVar(&f.duration, "for", 0, "watch: how long (default: until interrupted)")
	set.DurationVar(&f.every, "every", 500*time.Millisecond, "watch: how often to ask")
	return set
}

// parse reads the arguments, with flags before, between and after them; all after "--" are none.
func parse(args []string, stderr io.Writer) (*tool, error) {
	t := &tool{}
	set := t.flags.set()
	var literal []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, literal = args[:i], args[i+1:]
	}
	for len(args) > 0 {
		if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stderr, usage)
			set.SetOutput(stderr)
			set.PrintDefaults()
			fmt.Fprint(stderr, statuses)
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("%w: %w; -help lists the flags", errUsage, err)
		}
		if args = set.Args(); len(args) > 0 {
			t.args, args = append(t.args, args[0]), args[1:]
		}
	}
	t.args = append(t.args, literal...)
	return t, t.check()
}

// check finds the command, and faults before anything is asked.
func (t *tool) check() error {
	if len(t.args) == 0 {
		return fmt.Errorf("%w: no command; -help lists them", errUsage)
	}
	c, ok := commands[t.args[0]]
	if !ok {
		return fmt.Errorf("%w: there is no command %q; -help lists them", errUsage, t.args[0])
	}
	if t.addrs == nil {
		t.addrs = splitAddrs(os.Getenv(addrsVariable))
	}
	t.args, t.do = t.args[1:], c.do
	switch {
	case !c.names(len(t.args)):
		return fmt.Errorf("%w: %s", errUsage, c.lacking)
	case len(t.addrs) == 0:
		return fmt.Errorf("%w: which nodes? -addrs or %s names them", errUsage, addrsVariable)
	case t.timeout < time.Millisecond || t.timeout > time.Hour:
		return fmt.Errorf("%w: -timeout %v: from 1ms to 1h", errUsage, t.timeout)
	case t.every <= 0 || t.duration < 0:
		return fmt.Errorf("%w: -every and -for must be positive", errUsage)
	case t.maxTTL < 0 || t.maxTTL > 0 && t.maxTTL < time.Millisecond:
		return fmt.Errorf("%w: -max-ttl %v: at least 1ms", errUsage, t.maxTTL)
	}
	return nil
}

func splitAddrs(text string) (addrs []string) {
	for addr := range strings.SplitSeq(text, ",") {
		if addr = strings.TrimSpace(addr); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

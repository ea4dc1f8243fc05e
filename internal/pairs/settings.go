package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/quorumlock/quorumlock/internal/fleet"
)

// settings are what the flags say.
type settings struct {
	rounds   int
	span     time.Duration
	nodes    int
	pool     int
	min      float64
	minGiven bool // else each kind of run has its own, or none
	guard    bool
	inside   bool
	only     int // callers; 0: all numbers of them
	dir      string
}

// settingsFrom reads the flags. Asked for help it gives that, and returns flag.ErrHelp.
func settingsFrom(args []string, told io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("pairs", flag.ContinueOnError)
	flags.IntVar(&s.rounds, "rounds", 5, "rounds")
	flags.DurationVar(&s.span, "span", time.Second,
		"of one library, in one round, with one number of callers")
	flags.IntVar(&s.nodes, "nodes", 5, "nodes")
	flags.IntVar(&s.pool, "pool", 0, "redsync's connections to each node; 0: go-redis' default")
	flags.Float64Var(&s.min, "min", 0, "exit with 1 where we are not so many times as fast as redsync"+
		" fail-fast, or with -guard as without\nthe guard; 0 judges nothing; not given: 6, with -guard 0.9,"+
		" and on nodes inside this process nothing is judged")
	flags.BoolVar(&s.guard, "guard", false,
		"compare ours with and without the restart guard, with 64 callers")
	flags.BoolVar(&s.inside, "inside", false,
		"on nodes inside this process, also where there is a redis-server")
	flags.IntVar(&s.only, "callers", 0,
		"measure with so many callers only, and judge nothing; 0: with 1, 64 and 512")
	flags.StringVar(&s.dir, "profile", "",
		"measure ours alone, judge nothing, and write profiles into this `directory`")
	flags.SetOutput(io.Discard) // what is wrong is said once, by the caller
	err = flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(told)
		fmt.Fprintln(told, "pairs measures lock + unlock beside redsync. Flags:")
		flags.PrintDefaults()
	}
	if err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("%q: there are only flags, see -h", flags.Args())
	}
	flags.Visit(func(f *flag.Flag) { s.minGiven = s.minGiven || f.Name == "min" })
	return s, s.check()
}

// check says what is wrong with the flags.
func (s settings) check() error {
	switch {
	case s.rounds < 1:
		return fmt.Errorf("-rounds %d: 1 at least", s.rounds)
	case s.span <= 0:
		return fmt.Errorf("-span %v: must be positive", s.span)
	case s.nodes < 1:
		return fmt.Errorf("-nodes %d: 1 at least", s.nodes)
	case s.pool < 0:
		return fmt.Errorf("-pool %d: 1 at least, or 0 for go-redis' default", s.pool)
	case s.only < 0:
		return fmt.Errorf("-callers %d: 1 at least, or 0 for 1, 64 and 512", s.only)
	case !(s.min >= 0) || math.IsInf(s.min, 0): // not a number, too
		return fmt.Errorf("-min %v: must be positive, or 0 to judge nothing", s.min)
	}
	return s.agree()
}

// agree says which flags do not go with each other.
func (s settings) agree() error {
	flag := "-callers"
	if s.dir != "" {
		flag = "-profile"
	}
	switch alone := s.only > 0 || s.dir != ""; {
	case alone && s.guard:
		return fmt.Errorf("-guard and %s: the guard is measured with %d callers, on and off: one of them",
			flag, judged)
	case alone && s.minGiven:
		return fmt.Errorf("-min and %s: nothing is judged there: one of them", flag)
	}
	return nil
}

// start starts the nodes.
func (s settings) start(ctx context.Context) (*fleet.Fleet, error) {
	if s.inside {
		return fleet.StartInside(s.nodes)
	}
	return fleet.Start(ctx, s.nodes)
}

// callers are how many call at once; judged is the number that the exit status depends on.
var callers = []int{1, 64, 512}

const judged = 64

// counts are the numbers of callers to measure with.
func (s settings) counts() []int {
	if s.only > 0 {
		return []int{s.only}
	}
	if s.guard {
		return []int{judged}
	}
	return callers
}

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// A document is a run as a reader gets it.
type document struct {
	command string
	machine machine
	at      time.Time
	took    time.Duration
	results results
}

// notes are what a reader must know to judge the numbers.
var notes = []string{
	"Servers and callers share one machine: what a server does is taken from the callers. Ratios" +
		" carry over to other machines better than times do.",
	"quorumlock runs as New makes it: restart guard, clock watch, fencing tokens, renewal. Only the" +
		" wait of new nodes is cut short, by Admit. Under load it asks a majority first, and a lock that is" +
		" freed within milliseconds is not sent to the rest (docs/adr/0012-a-majority-first.md). redsync" +
		" asks all nodes, and so does \"bare scripts\"; the bare scripts \"at a majority\" ask no more than" +
		" that: three nodes of five.",
	"redsync runs over go-redis with its default pools (1,024 connections to a node where a delay" +
		" is added); \"fail-fast\" is WithFailFast(true). Where it does not wait for a holder, both" +
		" of its ways try once (WithTries(1)).",
	"rueidislock takes a majority of three keys that all lie on one node, redislock one key on one" +
		" node: they ask less, and lose their locks with that node. Among the hand-offs ours is on one node," +
		" too, so that there is like beside like.",
	"gocron-redis-lock is gocron's locker, here on one node: it takes one client of Redis, and asks" +
		" it by redsync. It is set up as its README says, with one try (WithTries(1)): who does not" +
		" get the lock skips the tick. So it is no part of the hand-offs, where callers wait, nor of" +
		" the elections, which are about more than one node.",
	"Where one of five nodes is dead or frozen, these are five nodes of their own: it is so before" +
		" the clients connect, and stays so.",
}

// print writes the run for a terminal.
func (d *document) print(out io.Writer) error {
	fmt.Fprintf(out, "\n%s\n%s\n\n", d.machine, d.command)
	if err := print(out, d.results.tables()); err != nil {
		return err
	}
	for _, failure := range d.results.failures() {
		fmt.Fprintf(out, "first failure, %s\n", failure)
	}
	_, err := fmt.Fprintf(out, "%s after %v\n", d.results.form.name, d.took.Round(time.Second))
	return err
}

// markdown is the run as a page; svg is the chart's path from the page, "" for none.
func (d *document) markdown(svg string) string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\nThis page is written by a run, and not by hand.\n\n")
	fmt.Fprintf(&b, "- command: `%s`, form %s, %s, %v\n", d.command, d.results.form.name,
		d.at.UTC().Format("2006-01-02 15:04 UTC"), d.took.Round(time.Second))
	if about := d.results.form.said(); about != "" {
		b.WriteString(strings.Replace(wrap("- "+about, 96), "\n", "\n  ", -1) + "\n")
	}
	if d.machine.commit != "" {
		fmt.Fprintf(&b, "- commit: %s\n", d.machine.commit)
	}
	fmt.Fprintf(&b, "- machine: %s, %d CPUs, %s\n", d.machine.cpu, d.machine.cpus, d.machine.os)
	fmt.Fprintf(&b, "- %s, redis-server %s without persistence, on loopback\n", d.machine.goVer,
		d.machine.redis)
	fmt.Fprintf(&b, "- %s\n\n", strings.Join(d.machine.libs, ", "))
	for _, note := range notes {
		b.WriteString(strings.Replace(wrap("- "+note, 96), "\n", "\n  ", -1) + "\n")
	}
	b.WriteString("\n")
	if svg != "" {
		fmt.Fprintf(&b, "![How many times as fast quorumlock is](%s)\n\n", filepath.ToSlash(svg))
	}
	for _, t := range d.results.tables() {
		b.WriteString(t.markdown() + "\n")
	}
	if failures := d.results.failures(); len(failures) > 0 {
		b.WriteString("## First failures\n\n")
		for _, failure := range failures {
			b.WriteString("- " + strings.Join(strings.Fields(failure), " ") + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// chart is the run's ratios as SVG.
func (d *document) chart() string {
	return chart("How many times as fast quorumlock is as ... (black line: target)", d.results.bars())
}

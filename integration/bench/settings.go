package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// settings are what the flags say.
type settings struct {
	form    form
	command string // as the document names it
	files   files
}

// settingsFrom reads the flags. Asked for help it gives that, and returns flag.ErrHelp.
func settingsFrom(args []string, told io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	name := flags.String("form", "core", "what to measure: a `form`, see above")
	flags.StringVar(&s.files.out, "out", "", "`file` to write the document to, in Markdown")
	flags.StringVar(&s.files.svg, "svg", "", "`file` to write the chart to")
	flags.StringVar(&s.command, "command", "",
		"what the document says was run; not given: this program and its flags")
	flags.SetOutput(io.Discard) // what is wrong is said once, by the caller
	err = flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(told)
		help(told)
		flags.PrintDefaults()
	}
	if err != nil {
		return s, err
	}
	if s.command == "" {
		s.command = strings.Join(append([]string{"go run ./bench"}, args...), " ")
	}
	return s, s.chosen(*name, flags.Args())
}

// help says which forms there are.
func help(told io.Writer) {
	fmt.Fprintln(told, "bench measures quorumlock beside other Redis locks, on redis-servers of its"+
		" own.\n\nForms:")
	for _, f := range forms {
		fmt.Fprintf(told, "  %-8s %s (%s)\n", f.name, f.about, f.takes)
	}
	fmt.Fprintln(told, "\nFlags:")
}

// chosen sets the form.
func (s *settings) chosen(name string, rest []string) (err error) {
	if len(rest) > 0 {
		return fmt.Errorf("%q: there are only flags, see -h", rest)
	}
	s.form, err = formNamed(name)
	return err
}

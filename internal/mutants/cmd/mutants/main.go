// Command mutants takes one rule of the engine away at a time and runs the test that has to
// notice. It is started in the module's root, with names of mutants or none for all, and exits
// with 1 when one was not caught.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/quorumlock/quorumlock/internal/mutants"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	all := mutants.All
	if len(os.Args) > 1 {
		all = named(os.Args[1:])
	}
	if len(all) == 0 {
		fmt.Fprintln(os.Stderr, "mutants: no mutant of that name")
		os.Exit(2)
	}
	if err := mutants.Run(ctx, ".", all, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// named are the mutants whose name contains one of the words.
func named(words []string) (some []mutants.Mutant) {
	for _, m := range mutants.All {
		for _, word := range words {
			if strings.Contains(m.Name, word) {
				some = append(some, m)
				break
			}
		}
	}
	return some
}

package mutants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// Run tries the mutants one after another and writes a line about each. First every test that has
// to fail is run without any mutant: it has to pass. The error names what was not caught.
func Run(ctx context.Context, root string, all []Mutant, progress io.Writer) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	var faults []error
	sound := make(map[string]bool)
	for i, m := range all {
		test := m.Package + " " + m.Run
		if !sound[test] {
			sound[test] = true
			if result, output := m.Sound(ctx, root); result != Survived {
				return fmt.Errorf("%s does not pass without any mutant:\n%s", test, output)
			}
		}
		began := time.Now()
		result, output, err := m.Try(ctx, root)
		if err != nil {
			return err
		}
		fmt.Fprintf(progress, "%2d/%d  %-8s  %6.1fs  %s: %s\n", i+1, len(all), result,
			time.Since(began).Seconds(), m.Name, m.Rule)
		if result != Caught {
			faults = append(faults, fmt.Errorf("%s: %v\n%s", m.Name, result, last(output)))
		}
	}
	return errors.Join(faults...)
}

// last is the end of a long output.
func last(text string) string {
	const most = 2000
	if len(text) > most {
		return "..." + text[len(text)-most:]
	}
	return text
}

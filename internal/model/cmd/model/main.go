// Command model checks the protocol's models, row by row of a table, and compares what comes of
// each with what must.
//
//	go run ./internal/model/cmd/model
//	go run ./internal/model/cmd/model -v -row "exclusion/restart/plant on a waiting node"
//
// The exit status is 1 if a row does not come out as expected, and 2 if there is no such row.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/internal/model"
)

func main() {
	name := flag.String("row", "", "run only the row of this name, or those whose name contains it")
	verbose := flag.Bool("v", false, "print the run that leads to what was found")
	flag.Parse()
	os.Exit(run(os.Stdout, selectRows(model.Table(), *name), *verbose))
}

// selectRows returns the row of that name or, if there is none, the rows that contain it.
func selectRows(rows []model.Row, name string) []model.Row {
	var selected []model.Row
	for _, row := range rows {
		if row.Name == name {
			return []model.Row{row}
		}
		if strings.Contains(row.Name, name) {
			selected = append(selected, row)
		}
	}
	return selected
}

// run checks the rows and returns the exit status.
func run(out io.Writer, rows []model.Row, verbose bool) int {
	if len(rows) == 0 {
		fmt.Fprintln(out, "no such row")
		return 2
	}
	states, wrong := 0, 0
	start := time.Now()
	for _, row := range rows {
		n, ok := check(out, row, verbose)
		states += n
		if !ok {
			wrong++
		}
	}
	fmt.Fprintf(out, "%d rows, %d not as expected, %d states, %.1f s\n",
		len(rows), wrong, states, time.Since(start).Seconds())
	if wrong > 0 {
		return 1
	}
	return 0
}

// check checks one row, and prints a line for it when it is through.
func check(out io.Writer, row model.Row, verbose bool) (states int, ok bool) {
	start := time.Now()
	report := row.Run()
	took := time.Since(start).Seconds()

	differs := row.Want.Differs(report)
	verdict := "ok   "
	if differs != "" {
		verdict = "WRONG"
	}
	fmt.Fprintf(out, "%s %-78s %-46s %8d states %5.1f s\n",
		verdict, label(row), model.Outcome(report), report.States, took)
	if differs != "" {
		fmt.Fprintf(out, "      %s\n", differs)
	}
	if verbose {
		for i, step := range report.Trace {
			fmt.Fprintf(out, "      %2d %s\n", i+1, step)
		}
	}
	return report.States, differs == ""
}

// label is the name of a row, with the finding it belongs to.
func label(row model.Row) string {
	if row.Finding == "" {
		return row.Name
	}
	return row.Name + " (" + row.Finding + ")"
}

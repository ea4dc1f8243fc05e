// Command example is the program of the README, so that what stands there compiles: main.go is
// copied from it word for word, and a test compares the two.
package main

import (
	"context"
	"log"
	"time"
)

// sendInvoices stands for the work. What it writes should be refused if a larger token has been
// seen there.
func sendInvoices(ctx context.Context, day time.Time, token uint64) error {
	log.Printf("invoices of %s, token %d", day.Format(time.DateOnly), token)
	return ctx.Err()
}

package main

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/quorumlock/redlock"
	"github.com/quorumlock/quorumlock/schedule"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := redlock.New(redlock.Config{Addrs: []string{"redis-1:6379", "redis-2:6379", "redis-3:6379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	scheduler, err := schedule.New(client)
	if err != nil {
		log.Fatal(err)
	}
	_, err = scheduler.Add("invoices", gocron.CronJob("0 3 * * *", false), func(ctx context.Context, tick schedule.Tick) error {
		return sendInvoices(ctx, tick.At, tick.Token) // ctx ends if the lock is lost
	})
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	<-ctx.Done()
	_ = scheduler.Shutdown(context.Background())
}

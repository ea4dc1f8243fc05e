package nodetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/quorum"
)

// redisData is the memory of a node that speaks Redis' protocol.
type redisData struct {
	t      *testing.T
	client *redis.Client
}

// overRedis makes a subject of a server's address, and of what looks into it, both with
// connections of their own.
func overRedis(t *testing.T, addr string) (Subject, *redis.Client) {
	t.Helper()
	node, err := quorum.Dial(addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	t.Cleanup(func() {
		if err := errors.Join(node.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	return Subject{Node: node, Data: redisData{t, client}}, client
}

func (d redisData) Get(key string) (string, bool) {
	d.t.Helper()
	return d.text(d.client.Get(d.t.Context(), key))
}

func (d redisData) HGet(key, field string) (string, bool) {
	d.t.Helper()
	return d.text(d.client.HGet(d.t.Context(), key, field))
}

func (d redisData) TTL(key string) time.Duration {
	d.t.Helper()
	ttl, err := d.client.PTTL(d.t.Context(), key).Result()
	d.must(err)
	return ttl
}

func (d redisData) Set(key, text string, ttl time.Duration) {
	d.t.Helper()
	d.must(d.client.Set(d.t.Context(), key, text, ttl).Err())
}

func (d redisData) SetHash(key string, fields map[string]string, ttl time.Duration) {
	d.t.Helper()
	_, err := d.client.TxPipelined(d.t.Context(), func(p redis.Pipeliner) error {
		p.Del(d.t.Context(), key)
		p.HSet(d.t.Context(), key, fields)
		if ttl > 0 {
			p.PExpire(d.t.Context(), key, ttl)
		}
		return nil
	})
	d.must(err)
}

func (d redisData) text(cmd *redis.StringCmd) (string, bool) {
	d.t.Helper()
	text, err := cmd.Result()
	if errors.Is(err, redis.Nil) || err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") {
		return "", false
	}
	d.must(err)
	return text, true
}

func (d redisData) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

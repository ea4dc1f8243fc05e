package integration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// askTimeout bounds one question to a node.
const askTimeout = 5 * time.Second

// Do sends one command to the server itself, past the proxy, as a user with all rights. The answer
// is a string, an int64, nil or []any; an error answer is an error.
func (n *Node) Do(ctx context.Context, command ...any) (any, error) {
	n.mu.Lock()
	mapped := n.mapped
	if what := changeOf(command); what != "" {
		n.note(what)
	}
	n.mu.Unlock()
	if mapped == "" {
		return nil, fmt.Errorf("integration: %v to %s: it is down", command[0], n.Addr())
	}
	return n.ask(ctx, mapped, command...)
}

// ConfigSet changes one setting of the running server. A restart forgets it.
func (n *Node) ConfigSet(ctx context.Context, setting string, value any) error {
	_, err := n.Do(ctx, "CONFIG", "SET", setting, value)
	return n.wrap("set "+setting, err)
}

// ask uses a connection of its own: what is asked is asked of the server that is there now.
func (n *Node) ask(ctx context.Context, addr string, command ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	options := &redis.Options{
		Addr: addr, Username: admin, Password: n.settings.secret, Protocol: 2,
		MaxRetries: -1, DialerRetries: 1, PoolSize: 1, ContextTimeoutEnabled: true,
		ReadTimeout: askTimeout, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if n.settings.ca != nil {
		options.TLSConfig = n.settings.ca.ClientConfig()
	}
	c := redis.NewClient(options)
	defer c.Close()
	answer, err := c.Do(ctx, command...).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return answer, err
}

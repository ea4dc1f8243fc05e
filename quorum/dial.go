package quorum

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Dial makes a node of an address: host:port, redis://, rediss:// (TLS) or unix://. It does not
// connect: the node need not be up. An error names what is wrong with the address and shows no
// password.
func Dial(addr string, timeout time.Duration) (*RedisNode, error) {
	options, name, err := parseAddr(addr)
	if err != nil {
		return nil, err
	}
	// The engine alone repeats: a client that repeats by itself may do so on another connection,
	// long after the message stopped being wanted.
	options.MaxRetries = -1
	options.DialerRetries = 1
	options.ContextTimeoutEnabled = true
	options.DialTimeout = timeout
	options.ReadTimeout = timeout
	options.WriteTimeout = timeout
	options.PoolTimeout = timeout
	// As many connections as can be needed. The pool may be larger: after as many failed dials as
	// its size go-redis dials by itself only once a second, and a node that is back would be
	// noticed late.
	options.MaxIdleConns = maxFlights + maxProbes
	options.PoolSize = 1 << 10
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{
		Mode: maintnotifications.ModeDisabled,
	}
	if options.Protocol == 0 {
		options.Protocol = 2 // nothing of the third is used
	}
	options.Dialer = bounded(redis.NewDialer(options))
	node := &RedisNode{name: name, own: true, timeout: timeout}
	options.OnConnect = func(context.Context, *redis.Conn) error {
		node.fresh.Store(true)
		return nil
	}
	node.client = redis.NewClient(options)
	return node, nil
}

// SameAddr reports whether two addresses as configured lead to the same place by their text.
func SameAddr(a, b string) bool {
	optionsA, _, errA := parseAddr(a)
	optionsB, _, errB := parseAddr(b)
	if errA != nil || errB != nil {
		return a == b
	}
	return optionsA.Network == optionsB.Network && canonical(optionsA.Addr) == canonical(optionsB.Addr)
}

// canonical is one of the ways to write an address.
func canonical(addr string) string {
	host, port, err := net.SplitHostPort(strings.ToLower(addr))
	if err != nil {
		return addr
	}
	host = strings.TrimSuffix(host, ".")
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	if n, err := strconv.Atoi(port); err == nil {
		port = strconv.Itoa(n)
	}
	return net.JoinHostPort(host, port)
}

// parseAddr reads an address and gives it a name without password.
func parseAddr(addr string) (*redis.Options, string, error) {
	if addr == "" {
		return nil, "", errors.New("address is empty")
	}
	if strings.ContainsFunc(addr, unicode.IsSpace) {
		return nil, "", fmt.Errorf("address %q: it has white space", hidePassword(addr))
	}
	if !strings.Contains(addr, "://") {
		host, port, err := net.SplitHostPort(addr)
		if err != nil || host == "" || port == "" || strings.Contains(addr, "@") {
			return nil, "", fmt.Errorf("address %q is not host:port, redis://, rediss:// or unix://",
				hidePassword(addr))
		}
		if err := checkPort(addr); err != nil {
			return nil, "", err
		}
		return &redis.Options{Network: "tcp", Addr: addr}, addr, nil
	}
	options, err := redis.ParseURL(addr)
	if err != nil {
		return nil, "", fmt.Errorf("address %q: %s", hidePassword(addr), bareReason(err, addr))
	}
	if options.Network == "tcp" {
		if err := checkPort(options.Addr); err != nil {
			return nil, "", fmt.Errorf("address %q: %w", hidePassword(addr), err)
		}
	}
	return options, hidePassword(addr), nil
}

// checkPort finds ports that cannot be, where a dial would say so only much later. Names of
// services are left to it.
func checkPort(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: %w", addr, err)
	}
	if n, err := strconv.Atoi(port); err == nil && (n < 1 || n > 65535) {
		return fmt.Errorf("address %q: the port must be from 1 to 65535", addr)
	}
	return nil
}

// hidePassword shows an address without its credentials, also one that is no proper URL.
func hidePassword(addr string) string {
	scheme, rest, isURL := strings.Cut(addr, "://")
	if !isURL {
		return addr[strings.LastIndexByte(addr, '@')+1:]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	if u, err := url.Parse(scheme + "://" + rest); err == nil {
		query := u.Query()
		for _, secret := range []string{"password", "username"} {
			query.Del(secret)
		}
		if u.RawQuery != "" {
			u.RawQuery = query.Encode()
		}
		return u.String()
	}
	return scheme + "://" + rest
}

// bareReason is the innermost reason: the outer errors of net/url repeat the address.
func bareReason(err error, addr string) string {
	var bad *url.Error
	if errors.As(err, &bad) {
		err = bad.Err
	}
	if strings.Contains(err.Error(), addr) {
		return "not a Redis address"
	}
	return err.Error()
}

// CheckAddr says what is wrong with an address, without connecting.
func CheckAddr(addr string) error {
	_, _, err := parseAddr(addr)
	return err
}

// AddrName is an address as it is shown: without credentials.
func AddrName(addr string) string { return hidePassword(addr) }

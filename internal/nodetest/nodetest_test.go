package nodetest

import (
	"testing"

	"github.com/quorumlock/quorumlock/internal/embedded"
	"github.com/quorumlock/quorumlock/internal/fakenode"
	"github.com/quorumlock/quorumlock/internal/redisproc"
)

func TestFakeNode(t *testing.T) {
	t.Parallel()
	node := fakenode.New("fake")
	Run(t, func(*testing.T) Subject { return Subject{Node: node, Data: node} })
}

func TestFakeNodeOverLinks(t *testing.T) {
	t.Parallel()
	node := fakenode.New("fake")
	Run(t, func(t *testing.T) Subject {
		link := node.Link()
		t.Cleanup(func() { _ = link.Close() })
		return Subject{Node: link, Data: node}
	})
}

func TestMiniredis(t *testing.T) {
	t.Parallel()
	Run(t, startMiniredis(t))
}

func TestRedis(t *testing.T) {
	t.Parallel()
	Run(t, startRedis(t))
}

func TestMiniredisIsLikeTheFakeNode(t *testing.T) {
	t.Parallel()
	compareWithFake(t, startMiniredis(t)(t))
}

func TestRedisIsLikeTheFakeNode(t *testing.T) {
	t.Parallel()
	compareWithFake(t, startRedis(t)(t))
}

func startMiniredis(t *testing.T) func(t *testing.T) Subject {
	t.Helper()
	server := embedded.ForTest(t, 1)[0]
	return func(t *testing.T) Subject {
		s, client := overRedis(t, server.Addr())
		s.NoReplication = true
		s.ForgetScripts = func() { _ = client.ScriptFlush(t.Context()).Err() }
		return s
	}
}

func startRedis(t *testing.T) func(t *testing.T) Subject {
	t.Helper()
	redisproc.Require(t)
	server := redisproc.ForTest(t, 1)[0]
	return func(t *testing.T) Subject {
		s, client := overRedis(t, server.Addr())
		s.ForgetScripts = func() { _ = client.ScriptFlush(t.Context()).Err() }
		return s
	}
}

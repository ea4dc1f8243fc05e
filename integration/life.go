package integration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moby/moby/client"
)

// stopTimeout is how long a server has to end by itself.
const stopTimeout = 5 * time.Second

// Stop asks the server to end (SIGTERM) and waits until it has; it writes its data if so
// configured.
func (n *Node) Stop() error {
	return n.change("stop", func(ctx context.Context) error {
		if err := n.thaw(ctx); err != nil {
			return err
		}
		timeout := stopTimeout
		return errors.Join(n.container.Stop(ctx, &timeout), n.down())
	})
}

// Kill ends the server at once (SIGKILL) and waits until it is gone.
func (n *Node) Kill() error {
	return n.change("kill", func(ctx context.Context) error {
		_, err := n.engine().ContainerKill(ctx, n.container.ID,
			client.ContainerKillOptions{Signal: "KILL"})
		if err != nil {
			return err
		}
		err = poll(ctx, func() bool {
			state, err := n.container.State(ctx)
			return err == nil && !state.Running
		})
		n.paused = false
		return errors.Join(err, n.down())
	})
}

// down takes the ways from the port, which may be another server's in a moment.
func (n *Node) down() error {
	n.mapped = ""
	return n.lead()
}

// Start starts a node that is down again, with the data that it wrote, and waits until it answers.
func (n *Node) Start() error { return n.change("start", n.start) }

// StartEmpty is Start without any data.
func (n *Node) StartEmpty() error {
	return n.change("start empty", func(ctx context.Context) error {
		if n.mapped != "" {
			return errors.New("it runs")
		}
		if err := inTurn(ctx, func() error {
			return n.container.CopyToContainer(ctx, nil, emptyFile, 0o644)
		}); err != nil {
			return err
		}
		return n.start(ctx)
	})
}

func (n *Node) start(ctx context.Context) error {
	if n.mapped != "" {
		return errors.New("it runs")
	}
	if err := inTurn(ctx, func() error { return n.container.Start(ctx) }); err != nil {
		return err
	}
	return n.connect(ctx)
}

// Pause freezes the container: connections are accepted by the kernel, nothing is answered.
func (n *Node) Pause() error {
	return n.change("pause", func(ctx context.Context) error {
		// Of a busy machine the engine may say that it was unable to freeze it; nothing has
		// happened then.
		var last error
		err := poll(ctx, func() bool {
			_, last = n.engine().ContainerPause(ctx, n.container.ID, client.ContainerPauseOptions{})
			return last == nil
		})
		n.paused = err == nil
		if err != nil {
			return errors.Join(err, last)
		}
		return nil
	})
}

// Unpause lets it go on: it works off what it was sent meanwhile.
func (n *Node) Unpause() error { return n.change("unpause", n.thaw) }

// LoseDisk takes the directory away that the server writes to, until it is started again.
func (n *Node) LoseDisk() error {
	return n.change("lose disk", func(ctx context.Context) error {
		code, _, err := n.container.Exec(ctx, []string{"rm", "-rf", home + "/data"})
		if err == nil && code != 0 {
			err = fmt.Errorf("status %d", code)
		}
		return err
	})
}

func (n *Node) thaw(ctx context.Context) error {
	if !n.paused {
		return nil
	}
	_, err := n.engine().ContainerUnpause(ctx, n.container.ID, client.ContainerUnpauseOptions{})
	n.paused = n.paused && err != nil
	return err
}

package integration

import (
	"context"
	"runtime"
)

// turns bounds how much the engine is asked to do at once. Containers that start side by side on
// few processors keep everything else from running, and take no less time in all.
var turns = make(chan struct{}, max(1, runtime.NumCPU()/2))

// inTurn does what is hard work for the engine.
func inTurn(ctx context.Context, do func() error) error {
	select {
	case turns <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-turns }()
	return do()
}

//go:build soakclock

package main

import "time"

// setClock sets this process' wall clock so much ahead of the machine's. time.WallOffset is there
// in binaries that soak/build makes.
func setClock(ahead time.Duration) error {
	time.WallOffset.Store(int64(ahead))
	return nil
}

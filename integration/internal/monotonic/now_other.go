//go:build !unix

package monotonic

import "time"

// Now is the wall clock, the only one here that all processes share: a step of it is measured, too.
func Now() int64 { return time.Now().UnixNano() }

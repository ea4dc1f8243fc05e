//go:build !unix

package main

import "time"

// now is the wall clock, the only one here that all processes share: a step of it is measured, too.
func now() int64 { return time.Now().UnixNano() }

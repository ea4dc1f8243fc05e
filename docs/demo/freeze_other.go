//go:build !unix

package main

import "syscall"

// There is nothing that freezes a process here: the demo says so and goes on.
const (
	stopSignal     = syscall.Signal(0)
	continueSignal = syscall.Signal(0)
)

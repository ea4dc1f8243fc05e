//go:build unix

package main

import "syscall"

// What freezes a process, and what lets it go on.
const (
	stopSignal     = syscall.SIGSTOP
	continueSignal = syscall.SIGCONT
)

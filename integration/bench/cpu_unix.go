//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime is what this process has used of the processors, in its own code and in the kernel.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

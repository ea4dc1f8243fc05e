//go:build unix && !linux

package redisproc

import "syscall"

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// childAttr: here a child outlives a program that is killed.
func childAttr() *syscall.SysProcAttr { return nil }

// stopped takes the signal's word for it: there is no /proc to ask.
func stopped(int) (bool, error) { return true, nil }

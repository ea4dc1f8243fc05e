//go:build !linux

package integration

import "syscall"

// childAttr is nothing where the kernel does not end the children of who died.
func childAttr() *syscall.SysProcAttr { return nil }

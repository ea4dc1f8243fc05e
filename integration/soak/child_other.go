//go:build !linux

package main

import "syscall"

// childAttr is nothing where the kernel does not end the children of who died: a replica ends with
// its input, unless it is frozen.
func childAttr() *syscall.SysProcAttr { return nil }

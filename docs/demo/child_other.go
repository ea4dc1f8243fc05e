//go:build !linux

package main

import "syscall"

// childAttr: here a frozen replica outlives a demo that is killed, until somebody lets it go on.
func childAttr() *syscall.SysProcAttr { return nil }

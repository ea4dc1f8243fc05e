//go:build !unix

package redisproc

import (
	"errors"
	"syscall"
)

// There is no redis-server for these systems, so nothing here is ever reached but by name.
const (
	sigStop = syscall.SIGKILL
	sigCont = syscall.SIGKILL
)

func childAttr() *syscall.SysProcAttr { return nil }

func stopped(int) (bool, error) { return false, errors.ErrUnsupported }

//go:build !soakclock

package main

import (
	"errors"
	"time"
)

// setClock says that it cannot: this binary has the standard library's clock.
func setClock(time.Duration) error {
	return errors.New("soak: the clock of this binary cannot be set wrong; that of soak/build's can")
}

//go:build !soakclock

package main

import (
	"errors"
	"time"
)

// setClock says that it cannot: this binary has the standard library's clock.
func setClock(time.Duration) error {
	return errors.New("soak: this binary's clock cannot be set wrong; soak/build makes one")
}

package redlock

import (
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"
)

// FuzzParseHandle: a handle is read whole or refused with ErrInvalid, whatever somebody made of it.
func FuzzParseHandle(f *testing.F) {
	f.Add("", false)
	f.Add(handleMark+"e30.00000000", false)
	f.Add(`{"p":"","n":"aw==","o":"ql1:a/b","f":1,"t":10000000000,"u":"2025-01-01T00:00:00Z"}`, true)
	f.Add(`{"n":"aw==","o":1}`, true)
	f.Add(`{"f":-1}`, true)
	f.Add(`[[[[[[`, true)
	f.Fuzz(func(t *testing.T, text string, payload bool) {
		if payload { // with a sum that is right
			text = fmt.Sprintf("%s%s.%08x", handleMark, base64.RawURLEncoding.EncodeToString([]byte(text)),
				crc32.ChecksumIEEE([]byte(text)))
		}
		if _, err := parseHandle(text); err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: got %v, want ErrInvalid", text, err)
		} else if err != nil && len(err.Error()) > 1000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}
